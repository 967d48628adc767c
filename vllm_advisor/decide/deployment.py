"""What is decided for the deployment as a whole: version, layout, strategies, routes."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Setting
from vllm_advisor.decide.layout import Demands, Slot
from vllm_advisor.decide.options import Option
from vllm_advisor.decide.reasons import Scope, formula, user
from vllm_advisor.decide.tree import REASONS, Strategy
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.plan import Alternative, Route
from vllm_advisor.types.workload import Workload


def deployment_decisions(
    workload: Workload,
    setting: Setting,
    demands: Demands,
    chosen: Option,
    tried: tuple[Alternative, ...],
) -> list[Decision]:
    """Version, instances and the strategy of every class, with the layouts that lost."""
    scope = Scope(name="plan")
    version_source = (
        user(workload.origins.get("vllm_version", "vllm_version"))
        if workload.vllm_version
        else formula("newest-known-version")
    )
    out = [
        scope.decide(
            "vllm-version",
            setting.engine.version,
            "stated by the workload"
            if workload.vllm_version
            else "the workload names none: the newest version whose flags and defaults are known",
            version_source,
            flag=False,
        ),
        scope.decide(
            "instances",
            ", ".join(slot.name for slot in chosen.slots),
            _layout_reason(demands, chosen),
            formula("decision-tree"),
            flag=False,
            rejected=tuple(
                Rejected(option=a.name, why=a.why) for a in tried if a.subject == "deployment"
            ),
        ),
    ]
    for demand in demands.all:
        strategy = demand.strategy
        out.append(
            scope.decide(
                f"strategy.{demand.request.name}",
                strategy.value,
                REASONS[strategy],
                formula("decision-tree"),
                flag=False,
                because=tuple(
                    f"cost.{demand.request.name}.{key}" for key in ("full_context_tokens",)
                )
                if strategy is Strategy.RAG_FIRST
                else (),
            )
        )
    return out


def _layout_reason(demands: Demands, chosen: Option) -> str:
    if len(chosen.slots) > 1:
        return (
            "short requests and long documents are kept apart: a long prompt would take the steps "
            "that short requests wait for, and a short context needs far less cache"
        )
    if chosen.slots[0].role == "general":
        return "one instance holds every class within the GPUs that are allowed"
    if demands.long or demands.fallbacks:
        return "every class needs a long context: one kind of instance"
    return "every class fits the short limit: one kind of instance, no long-document instance"


def routes_of(demands: Demands, slots: tuple[Slot, ...]) -> tuple[Route, ...]:
    """Where each class goes, and where it falls back to."""
    short = slots[0].name
    long = slots[-1].name
    falls_back = {d.request.name for d in demands.fallbacks}
    routes = [
        Route(
            request_class=d.request.name,
            strategy=d.strategy.value,
            instance=short,
            retrieve=d.strategy is Strategy.RAG_FIRST,
            fallback=long if d.request.name in falls_back else None,
            reason=REASONS[d.strategy],
        )
        for d in demands.short
    ]
    routes += [
        Route(
            request_class=d.request.name,
            strategy=d.strategy.value,
            instance=long,
            reason=REASONS[d.strategy],
        )
        for d in demands.long
    ]
    return tuple(routes)


def deployment_notes(demands: Demands, slots: tuple[Slot, ...]) -> tuple[str, ...]:
    """What the plan leaves to the application, and what it does not model."""
    unknown = [slot.name for slot in slots if slot.chosen.load is None]
    notes = []
    if unknown:
        notes.append(
            f"Replicas of {', '.join(unknown)} follow from how many requests the KV cache holds; "
            "the speed of this model and these settings is not modelled."
        )
    if any(d.strategy is Strategy.BOUNDED_HISTORY for d in demands.short):
        notes.append("Bounding the history is the application's work: vLLM refuses what is longer.")
    if any(d.strategy is Strategy.RAG_FIRST for d in demands.short):
        notes.append(
            "Retrieval is the application's work: it sends the passages, not the document."
        )
    return tuple(notes)
