"""Which instances the request classes are put on: short, long-document, or one for all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vllm_advisor.decide.candidate import Candidate, Setting
from vllm_advisor.decide.context import context_for
from vllm_advisor.decide.demand import Demand, class_demand
from vllm_advisor.decide.search import Search
from vllm_advisor.decide.tree import Strategy, class_strategy
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import Objective, Workload
from vllm_advisor.units import ceil_div

_LONG = (Strategy.WHOLE_CONTEXT, Strategy.NATIVE_SLIDING_WINDOW)
_LONGER = 2  # times as long: such a prompt keeps others waiting
_FALLBACK_SHARE = 10  # one retrieval in ten falls back to the whole document


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One instance to be: its name, its demands and the search over them."""

    name: str
    role: str
    search: Search

    @property
    def chosen(self) -> Candidate:
        """The best candidate.

        Raises:
            InfeasibleError: there is none.
        """
        best = self.search.best
        if best is None:
            first = self.search.candidates[0]
            raise InfeasibleError(f"instance {self.name}: {first.label}: {first.fails}")
        return best


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """All classes with their strategies; ``fallbacks`` are lookups that may read it all."""

    short: tuple[Demand, ...]
    long: tuple[Demand, ...]
    fallbacks: tuple[Demand, ...]
    notes: tuple[Assumption, ...]

    @property
    def all(self) -> tuple[Demand, ...]:
        """Every class once, as it is routed first."""
        return self.short + self.long

    @property
    def short_waits(self) -> bool:
        """Somebody waits for the short answers: long prompts beside them would be felt."""
        return any(
            d.request.objective is Objective.LATENCY
            and (d.request.slo.ttft_ms is not None or d.request.slo.itl_ms is not None)
            for d in self.short
        )


def demands_of(workload: Workload, setting: Setting) -> Demands:
    """Walk the tree for every class and say what it asks of its instance."""
    short: list[Demand] = []
    long: list[Demand] = []
    retrieved: list[Demand] = []
    notes: list[Assumption] = []
    for request in workload.classes:
        strategy = class_strategy(request, workload, setting.model)
        demand, assumed = class_demand(request, strategy, workload)
        notes += assumed
        (long if strategy in _LONG else short).append(demand)
        if strategy is Strategy.RAG_FIRST:
            whole, _ = class_demand(request, Strategy.WHOLE_CONTEXT, workload)
            retrieved.append(whole)
    # Retrieval falls back to the long instance where one exists, and needs one for exact recall.
    keep = [d for d in retrieved if long or d.request.exact_recall]
    fallbacks = tuple(_share(d) for d in keep)
    notes += [
        Assumption(
            id=f"{d.request.name}.fallback-share",
            text=f"class {d.request.name}: one request in {_FALLBACK_SHARE} is taken to fall back "
            "from retrieval to the whole document",
        )
        for d in keep
    ]
    return Demands(short=tuple(short), long=tuple(long), fallbacks=fallbacks, notes=tuple(notes))


def split(demands: Demands, setting: Setting) -> tuple[Slot, ...]:
    """Short requests on one instance, long documents on another (either may be absent)."""
    slots = []
    if demands.short:
        batch = all(d.request.objective is Objective.THROUGHPUT for d in demands.short)
        name = "embed" if setting.pooling else "batch" if batch else "chat"
        slots.append(_slot(name, "short", demands.short, setting))
    if demands.long or demands.fallbacks:
        documents = demands.long + demands.fallbacks
        slots.append(_slot("long-docs", "long-document", documents, setting))
    return tuple(slots)


def unified(demands: Demands, setting: Setting) -> tuple[Slot, ...]:
    """Everything on one instance."""
    everything = demands.all + demands.fallbacks
    return (_slot("general", "general", everything, setting),)


def served_names(slot: Slot, model_id: str) -> tuple[str, ...]:
    """The model's own name, then the roles that routers and clients ask for."""
    strategies = {d.strategy for d in slot.search.demands}
    names = [model_id, slot.name]
    if slot.role == "general":
        names += ["chat", "long-docs"]
    if Strategy.RAG_FIRST in strategies:
        names.append("rag")
    return tuple(dict.fromkeys(names))


def _slot(name: str, role: str, demands: tuple[Demand, ...], setting: Setting) -> Slot:
    search = Search(
        setting,
        demands,
        context_for(demands, setting.model),
        long_documents=role != "short",
        protected=role != "short" and _waits_behind_longer(demands),
    )
    return Slot(name=name, role=role, search=search)


def _waits_behind_longer(demands: tuple[Demand, ...]) -> bool:
    """Somebody waits for the first token of prompts that are short beside the longest."""
    longest = max(d.prompt_tokens for d in demands)
    return any(
        d.request.objective is Objective.LATENCY
        and (d.request.slo.ttft_ms is not None or d.request.slo.itl_ms is not None)
        and _LONGER * d.prompt_tokens <= longest
        for d in demands
        if d.share == 1.0
    )


def _share(demand: Demand) -> Demand:
    return replace(
        demand,
        concurrency=max(1, ceil_div(demand.concurrency, _FALLBACK_SHARE)),
        concurrency_formula=f"{demand.concurrency} / {_FALLBACK_SHARE}, the share that falls back",
        share=1 / _FALLBACK_SHARE,
    )
