"""The routing policy of a plan: names, thresholds, fallbacks, conversations and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.layout import Demands, Slot, served_names
from vllm_advisor.decide.prefix_caching import prefix_tokens
from vllm_advisor.decide.reasons import Scope, formula
from vllm_advisor.decide.routing_costs import Way, class_cost, cost_figures, cost_notes, prices_of
from vllm_advisor.decide.routing_wishes import (
    byte_assumptions,
    byte_count,
    conversation,
    wish_decisions,
)
from vllm_advisor.decide.thresholds import Threshold, threshold
from vllm_advisor.decide.tree import REASONS, Strategy
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.routing import (
    Bound,
    ByteCount,
    ClassRoute,
    PolicyRoute,
    Retrieval,
    RoutingPolicy,
)
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import Workload

_LONG = (Strategy.WHOLE_CONTEXT, Strategy.NATIVE_SLIDING_WINDOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The policy with the decisions, figures, assumptions and notes behind it."""

    policy: RoutingPolicy
    decisions: tuple[Decision, ...]
    figures: tuple[Figure, ...]
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One instance with its threshold and the names it is asked for by."""

    slot: Slot
    limit: Threshold
    names: tuple[str, ...]


def routing_of(
    workload: Workload, model_id: str, demands: Demands, slots: tuple[Slot, ...]
) -> Routing:
    """Decide which requests each instance gets."""
    places = tuple(
        _Place(
            slot=slot,
            limit=threshold(slot, others_take_more=slot is not slots[-1]),
            names=tuple(n for n in served_names(slot, model_id) if n != model_id),
        )
        for slot in slots
    )
    short, long = places[0], places[-1]
    # Long answers may leave the long instance less room for a prompt than the short one has.
    longer = long if long.limit.max_prompt_tokens > short.limit.max_prompt_tokens else None
    count = byte_count(workload, long.slot.search.context.max_model_len)
    routes = tuple(
        _route(name, place, longer, count, retrieved=name == "rag")
        for place in places
        for name in _ordered(place.names)
    )
    by_length = tuple(dict.fromkeys(p.names[0] for p in (short, longer) if p is not None))
    costs = tuple(
        class_cost(
            d,
            _way(_class_route(d, places), places),
            _way(_whole_route(d, demands, places), places),
            prices_of(workload),
        )
        for d in demands.all
    )
    policy = RoutingPolicy(
        plan=workload.name,
        model=model_id,
        routes=routes,
        by_length=by_length,
        byte_count=count,
        classes=tuple(_class(d, demands, places) for d in demands.all),
        retrieval=_retrieval(workload, demands, places),
        conversation=None  # an embedding answers nothing
        if short.slot.search.setting.pooling
        else conversation(workload, short.limit.max_prompt_tokens, count),
        prices=prices_of(workload),
        costs=costs,
    )
    return Routing(
        policy=policy,
        decisions=_decisions(workload, policy, places),
        figures=(*(f for p in places for f in p.limit.figures), *cost_figures(costs, workload)),
        assumptions=byte_assumptions(workload, policy),
        notes=cost_notes(costs, policy.prices),
    )


def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    """Short, retrieval, long: the order in which routes are asked."""
    last = ("rag", "long-docs")
    return tuple(sorted(names, key=lambda n: last.index(n) + 1 if n in last else 0))


def _route(
    name: str, place: _Place, longer: _Place | None, count: ByteCount, *, retrieved: bool
) -> PolicyRoute:
    limit, slot = place.limit, place.slot
    other = longer.names[0] if longer is not None and longer is not place else None
    if retrieved:
        reason = "question and passages that retrieval found, instead of the whole document"
    elif slot.role == "long-document":
        reason = "whole documents: a prompt that no other instance takes, and those asked for here"
    elif slot.role == "general":
        reason = "one instance answers to every name"
    else:
        reason = "short prompts go straight in"
    return PolicyRoute(
        name=name,
        instance=slot.name,
        role=slot.role,
        max_model_len=slot.search.context.max_model_len,
        reserved_output_tokens=limit.reserved_output_tokens,
        max_prompt_tokens=limit.max_prompt_tokens,
        max_prompt_bytes=int(limit.max_prompt_tokens * count.bytes_per_token * (1 - count.margin)),
        bound_by=limit.bound_by,
        on_overflow=other,
        on_outage=other,
        retrieved=retrieved,
        reason=reason,
    )


def _class_route(demand: Demand, places: tuple[_Place, ...]) -> str:
    """Name of the route a class takes first."""
    place = places[-1] if demand.strategy in _LONG else places[0]
    wanted = "long-docs" if demand.strategy in _LONG else "chat"
    if demand.strategy is Strategy.RAG_FIRST:
        wanted = "rag"
    return wanted if wanted in place.names else place.names[0]


def _whole_route(demand: Demand, demands: Demands, places: tuple[_Place, ...]) -> str | None:
    """Where a retrieved class has its documents read whole; ``None`` if nowhere."""
    if demand.request.name not in {d.request.name for d in demands.fallbacks}:
        return None
    return "long-docs" if "long-docs" in places[-1].names else places[-1].names[0]


def _way(route: str | None, places: tuple[_Place, ...]) -> Way:
    place = next((p for p in places if route in p.names), places[-1])
    return Way(route=route, block_tokens=prefix_tokens(place.slot.search, place.slot.chosen))


def _class(demand: Demand, demands: Demands, places: tuple[_Place, ...]) -> ClassRoute:
    return ClassRoute(
        name=demand.request.name,
        needs=demand.request.needs,
        route=_class_route(demand, places),
        strategy=demand.strategy.value,
        pinned=demand.strategy in _LONG,
        retrieve=demand.strategy is Strategy.RAG_FIRST,
        bound_history=demand.strategy is Strategy.BOUNDED_HISTORY,
        fallback=_whole_route(demand, demands, places),
        reason=REASONS[demand.strategy],
    )


def _retrieval(
    workload: Workload, demands: Demands, places: tuple[_Place, ...]
) -> Retrieval | None:
    retrieved = [d for d in demands.all if d.strategy is Strategy.RAG_FIRST]
    if not retrieved:
        return None
    return Retrieval(
        route=_class_route(retrieved[0], places),
        top_k=workload.rag.top_k,
        chunk_tokens=workload.rag.chunk_tokens,
        question_tokens=retrieved[0].prompt_tokens - workload.rag.retrieved_tokens,
        fallback=next((r for d in retrieved if (r := _whole_route(d, demands, places))), None),
    )


def _decisions(
    workload: Workload, policy: RoutingPolicy, places: tuple[_Place, ...]
) -> tuple[Decision, ...]:
    """One decision for each number of the policy."""
    scope = Scope(name="routing")
    out = [
        scope.decide(
            f"{place.slot.name}.max-prompt-tokens",
            place.limit.max_prompt_tokens,
            f"bound by {_BOUNDS[place.limit.bound_by]}: {place.limit.reason}",
            formula("routing-threshold"),
            flag=False,
            because=tuple(figure.id for figure in place.limit.figures),
        )
        for place in places
    ]
    out.append(
        scope.decide(
            "order",
            " -> ".join(route.name for route in policy.routes),
            _order_reason(policy),
            formula("decision-tree"),
            flag=False,
        )
    )
    return (*out, *wish_decisions(scope, workload, policy))


_BOUNDS = {Bound.LENGTH: "length", Bound.CAPACITY: "KV cache", Bound.SLO: "the TTFT target"}


def _order_reason(policy: RoutingPolicy) -> str:
    first = policy.route(policy.by_length[0])
    parts = ["a prompt goes straight in where it is short enough"]
    if policy.retrieval:
        parts.append("then retrieval is tried where passages can answer (needs: lookup)")
    if first.on_overflow:
        parts.append(
            f"then {first.on_overflow} reads all of it, which also stands in for {first.name} when "
            "that does not answer"
        )
    else:
        parts.append("nothing takes what is longer: it is refused")
    return ", ".join(parts)
