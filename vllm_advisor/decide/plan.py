"""The plan: walk the tree, try the layouts, build the instances, keep what lost."""

from __future__ import annotations

import math

from vllm_advisor.decide.candidate import Candidate, Setting
from vllm_advisor.decide.deployment import (
    deployment_decisions,
    deployment_notes,
    routes_of,
)
from vllm_advisor.decide.features import check_model_runs, feature_decisions, text_only
from vllm_advisor.decide.instance import Built, build_instance
from vllm_advisor.decide.layout import Demands, demands_of, served_names
from vllm_advisor.decide.nearest import nearest
from vllm_advisor.decide.options import Option, alternatives, tried_options, usd
from vllm_advisor.decide.prefix_caching import prefix_notes
from vllm_advisor.decide.reasons import Scope, user
from vllm_advisor.decide.routing import routing_of
from vllm_advisor.decide.schemes import classic_schemes
from vllm_advisor.decide.speed_figures import output_tokens_per_second, speed_assumptions
from vllm_advisor.decide.verified import MORE_LOAD, Verified, verified
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.knowledge.engines import engine_assumptions
from vllm_advisor.sizing.load import TIME_IN_SYSTEM
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.engine import EngineFacts, Overheads
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.plan import Alternative, Cost, Deployment, Plan
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import Feature, Workload


def make_plan(
    workload: Workload,
    model: ModelFacts,
    node: Node,
    engine: EngineFacts,
    overheads: Overheads,
    *,
    latency: LatencyFit | None = None,
    verify: bool = False,
) -> Plan:
    """Decide how to serve ``workload``.

    Returns:
        A plan. ``feasible`` is False when nothing meets the workload; ``infeasible_because`` and
        ``nearest`` then say why, and what would.
    """
    setting = Setting(
        model=model,
        node=node,
        engine=engine,
        overheads=overheads,
        constraints=workload.constraints,
        text_only=text_only(model, workload) and "language_model_only" in engine.flags,
        language_model_only=text_only(model, workload) and model.drops_encoders,
        pooling=Feature.EMBEDDINGS in workload.features,
        utilization=_utilization(workload, node, engine),
        lora=workload.lora,
        latency=latency,
    )
    try:
        check_model_runs(model, workload, engine)
        feature_decisions(Scope(name="plan"), model, workload, engine)
    except InfeasibleError as error:
        return _infeasible(workload, setting, (_account(error),), near=error.fix)
    demands = demands_of(workload, setting)
    price, _ = _price(workload, node)
    options = tried_options(demands, setting, price, workload.constraints.budget_usd_per_hour)
    chosen = next((o for o in options if not o.fails), None)
    tried = alternatives(options, chosen, price)
    if chosen is None:
        sized = next((o for o in options if o.slots), None)
        near = "\n".join(nearest(demands, setting, sized.layout)) if sized else options[0].fix
        reasons = tuple(f"{o.name}: {o.fails}" for o in options)
        return _infeasible(workload, setting, reasons, near=near, tried=tried, notes=demands.notes)
    return _feasible(workload, setting, demands, chosen, tried, verify=verify)


def _feasible(
    workload: Workload,
    setting: Setting,
    demands: Demands,
    chosen: Option,
    tried: tuple[Alternative, ...],
    *,
    verify: bool,
) -> Plan:
    price, price_source = _price(workload, setting.node)
    built: list[Built] = []
    taken = [slot.chosen for slot in chosen.slots]
    guessed = "" if all(one.load for one in taken) else TIME_IN_SYSTEM
    notes: list[Assumption] = [
        note for note in demands.notes if guessed or not note.id.endswith(TIME_IN_SYSTEM)
    ]
    notes += speed_assumptions(taken, setting)
    ports = 0
    for slot in chosen.slots:
        features, assumed = feature_decisions(
            Scope(name=slot.name), setting.model, workload, setting.engine
        )
        one = build_instance(
            slot.name,
            slot.role,
            slot.search,
            slot.chosen,
            workload=workload,
            features=features,
            served_names=served_names(slot, setting.model.model_id),
            ports=ports,
            shares_with_longer=slot.search.protected,
        )
        ports += slot.chosen.replicas
        built.append(one)
        notes += (*assumed, *prefix_notes(slot.search, slot.chosen))
        if one.instance.figures is not None:
            notes += one.instance.figures.assumptions
    replayed = [
        (slot.name, verified(slot.name, slot.chosen, protected=slot.search.protected))
        for slot in chosen.slots
        if verify
    ]
    routing = routing_of(workload, setting.model.model_id, demands, chosen.slots)
    longest = max(chosen.slots, key=lambda s: s.search.context.max_model_len)
    return Plan(
        name=workload.name,
        feasible=True,
        model=setting.model.model_id,
        vllm_version=setting.engine.version,
        node=setting.node,
        deployment=Deployment(instances=tuple(b.instance for b in built)),
        routes=routes_of(demands, chosen.slots),
        decisions=(
            *deployment_decisions(workload, setting, demands, chosen, tried),
            *(d for b in built for d in b.decisions),
            *routing.decisions,
        ),
        figures=(
            *(f for b in built for f in b.figures),
            *(f for _, one in replayed for f in one.figures),
            *routing.figures,
        ),
        alternatives=(
            *(a for a in tried if a.subject == "deployment"),
            *classic_schemes(longest.search, price),
            *(a for a in tried if a.subject != "deployment"),
        ),
        assumptions=_unique((*notes, *routing.assumptions, *engine_assumptions(setting.engine))),
        cost=_cost(taken, price, price_source),
        notes=(*_told(replayed), *routing.notes, *deployment_notes(demands, chosen.slots)),
        inputs=_inputs(workload),
        routing=routing.policy,
    )


def _told(replayed: list[tuple[str, Verified]]) -> tuple[str, ...]:
    """What the replay of the stated load says of the targets."""
    said = []
    for name, one in replayed:
        if one.why_not:
            said.append(f"{name} was not replayed: {one.why_not}.")
        elif one.missed:
            said += [f"Replayed, a target is missed: {missed}." for missed in one.missed]
        else:
            said.append(f"Replayed request by request, {name} meets its targets.")
            more = f"At {MORE_LOAD} times the load"
            said += [f"{more}, a target is missed: {missed}." for missed in one.missed_at_more]
            if not one.missed_at_more:
                said.append(f"{more}, {name} meets them too.")
    return tuple(said)


def _cost(taken: list[Candidate], price: float | None, price_source: str) -> Cost:
    """Of an hour, and of what is put out at the stated load."""
    gpus = sum(one.gpus for one in taken)
    hour = usd(price, gpus)
    modelled = all(one.load for one in taken)
    requests = sum(one.load.requests_per_second for one in taken if one.load)
    tokens = output_tokens_per_second(taken)

    def each(per_second: float, many: int) -> float | None:
        if hour is None or not modelled or not per_second:
            return None
        return float(f"{hour * many / (per_second * 3600):.4g}")

    return Cost(
        gpus=gpus,
        usd_per_hour=hour,
        price_source=price_source,
        usd_per_million_output_tokens=each(tokens, 10**6),
        usd_per_request=each(requests, 1),
    )


def _infeasible(
    workload: Workload,
    setting: Setting,
    reasons: tuple[str, ...],
    *,
    near: str,
    tried: tuple[Alternative, ...] = (),
    notes: tuple[Assumption, ...] = (),
) -> Plan:
    return Plan(
        name=workload.name,
        feasible=False,
        model=setting.model.model_id,
        vllm_version=setting.engine.version,
        node=setting.node,
        deployment=Deployment(instances=()),
        routes=(),
        decisions=(),
        figures=(),
        alternatives=tried,
        assumptions=_unique(
            (*notes, *setting.model.assumptions, *engine_assumptions(setting.engine))
        ),
        cost=Cost(gpus=0, usd_per_hour=None, price_source="no plan"),
        infeasible_because=reasons,
        nearest=near,
        inputs=_inputs(workload),
    )


def _account(error: InfeasibleError) -> str:
    return f"{error.what} ({error.where})" if error.where else error.what


def _utilization(workload: Workload, node: Node, engine: EngineFacts) -> float:
    """The version's default, lowered to what other processes leave free, in hundredths."""
    if workload.constraints.gpu_memory_utilization is not None:
        return workload.constraints.gpu_memory_utilization
    total = node.accelerator.memory_total
    free = math.floor((total - node.memory_used) * 100 / total) / 100
    return min(engine.gpu_memory_utilization, free)


def _price(workload: Workload, node: Node) -> tuple[float | None, str]:
    if workload.prices.gpu_hour_usd is not None:
        where = workload.origins.get("prices.gpu_hour_usd", "prices.gpu_hour_usd")
        return workload.prices.gpu_hour_usd, str(user(where))
    price = node.accelerator.price
    if price is None:
        return None, "no price is known; give prices.gpu_hour_usd"
    return price.usd_per_gpu_hour, str(price.source)


def _unique(notes: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
    return tuple({a.id: a for a in notes}.values())


def _inputs(workload: Workload) -> dict[str, object]:
    return {
        "classes": [
            {
                "name": c.name,
                "prompt_tokens": [c.prompt_tokens.p50, c.prompt_tokens.p95, c.prompt_tokens.max],
                "output_tokens": [c.output_tokens.p50, c.output_tokens.p95, c.output_tokens.max],
                "concurrent_requests": c.concurrent_requests,
                "requests_per_second": c.requests_per_second,
                "needs": c.needs.value,
            }
            for c in workload.classes
        ],
    }
