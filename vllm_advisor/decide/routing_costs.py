"""What a request costs on each way, and where reading whole documents becomes the cheaper one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.reasons import formula, user
from vllm_advisor.decide.tree import Strategy
from vllm_advisor.types.routing_costs import ClassCost, RouteCost, TokenPrices
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.workload import Workload
from vllm_advisor.units import format_tokens

PASSAGES = "passages"
WHOLE = "whole prompt"
BOUNDED = "bounded history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of a class: which route, and in which steps the cache there finds a prefix."""

    route: str | None
    block_tokens: int

    def found(self, tokens: int) -> int:
        """Tokens of a repeated prefix that the cache finds: whole blocks."""
        return tokens // self.block_tokens * self.block_tokens


def prices_of(workload: Workload) -> TokenPrices:
    """The stated prices; a cached token costs nothing unless stated, for nothing is computed."""
    given = workload.prices
    return TokenPrices(
        input=given.input_usd_per_million_tokens,
        output=given.output_usd_per_million_tokens,
        cached_input=given.cached_input_usd_per_million_tokens or 0.0,
    )


def class_cost(demand: Demand, first: Way, whole: Way, prices: TokenPrices) -> ClassCost:
    """The ways of one class for its median request.

    Args:
        demand: the class under its strategy.
        first: the route that its requests take.
        whole: where the whole document would be read; its route is ``None`` if nowhere.
        prices: per million tokens.
    """
    request = demand.request
    often = request.requests_per_document
    if demand.strategy is not Strategy.RAG_FIRST:
        bounded = demand.strategy is Strategy.BOUNDED_HISTORY
        prompt = min(request.prompt_tokens.p50, demand.prompt_tokens)
        name = BOUNDED if bounded else WHOLE
        way = _way(demand, first, name, prompt=prompt, repeats=prompt, prices=prices)
        return ClassCost(request_class=request.name, ways=(way,), requests_per_document=often)
    passages = _way(demand, first, PASSAGES, prompt=demand.prompt_tokens, repeats=0, prices=prices)
    question = demand.prompt_tokens - demand.retrieved_tokens
    document = max(0, request.prompt_tokens.p50 - question)
    read = _way(
        demand, whole, WHOLE, prompt=request.prompt_tokens.p50, repeats=document, prices=prices
    )
    return ClassCost(
        request_class=request.name,
        ways=(passages, read),
        requests_per_document=often,
        break_even_requests_per_document=_reuse(demand, whole, document, passages, prices),
        break_even_retrieval_quality=_quality(demand, whole, passages, read, prices),
    )


def _way(
    demand: Demand, way: Way, name: str, *, prompt: int, repeats: int, prices: TokenPrices
) -> RouteCost:
    """A request on average over all that are sent about one document, of which ``repeats`` tokens.

    The first of them finds the shared prefix only, the others the document with it.
    """
    request = demand.request
    shared = way.found(min(demand.shared_prefix_tokens, prompt))
    # vLLM always computes the last token of a prompt.
    again = max(shared, way.found(min(repeats, prompt - 1)))
    often = request.requests_per_document
    cached = math.floor((shared + (often - 1) * again) / often)
    output = request.output_tokens.p50
    return RouteCost(
        route=way.route,
        way=name,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        usd=_cents(prices.usd(prompt, cached, output)),
    )


def _cents(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)


def _weight(prices: TokenPrices) -> float:
    """What a cached prompt token costs of one that is computed."""
    return prices.cached_input / prices.input if prices.input else 0.0


def _first_read(demand: Demand, whole: Way, prices: TokenPrices) -> float:
    """The whole document for the first time, in prompt tokens that are computed."""
    shared = whole.found(demand.shared_prefix_tokens)
    return demand.request.prompt_tokens.p50 - shared * (1 - _weight(prices))


def _computed(cost: RouteCost, prices: TokenPrices) -> float:
    return cost.prompt_tokens - cost.cached_tokens * (1 - _weight(prices))


def _reuse(
    demand: Demand, whole: Way, document: int, passages: RouteCost, prices: TokenPrices
) -> int | None:
    """Smallest n with first + (n - 1) x again <= n x passages, all in computed prompt tokens."""
    first, often = _first_read(demand, whole, prices), _computed(passages, prices)
    again = demand.request.prompt_tokens.p50 - whole.found(document) * (1 - _weight(prices))
    if first <= often:
        return 1
    if again >= often:
        return None
    return math.ceil(round((first - again) / (often - again), 9))


def _quality(
    demand: Demand,
    whole: Way,
    passages: RouteCost,
    read: RouteCost,
    prices: TokenPrices,
) -> float | None:
    """Least share s of answered questions with passages + (1 - s) x (first read + answer) <= whole.

    A question that passages do not answer is asked again with the whole document, read anew: what
    was generated in vain is paid as well. ``None`` if whole documents are cheaper whatever s is.
    """
    saved = _computed(read, prices) - _computed(passages, prices)
    if saved < 0:
        return None
    answer = demand.request.output_tokens.p50
    in_vain = answer * prices.output / prices.input if prices.input and prices.output else 0.0
    least = 1 - saved / (_first_read(demand, whole, prices) + in_vain)
    return max(0.0, math.ceil(least * 10_000) / 10_000)


def cost_figures(costs: tuple[ClassCost, ...], workload: Workload) -> tuple[Figure, ...]:
    """The figures of retrieval against whole documents, and a price per request where known."""
    places = {c.name: c.where or "classes" for c in workload.classes}
    found: list[Figure] = []
    for cost in costs:
        scope = f"cost.{cost.request_class}"
        if len(cost.ways) > 1:
            found += _compared(scope, cost, places[cost.request_class], workload)
        found += [
            Figure(
                id=f"{scope}.{_KEYS[way.way]}_usd",
                value=way.usd,
                unit="usd/request",
                formula=f"{way.prompt_tokens - way.cached_tokens:,} computed and "
                f"{way.cached_tokens:,} cached prompt tokens"
                + (
                    " at the stated prices; no price of output tokens is stated"
                    if workload.prices.output_usd_per_million_tokens is None
                    else f", {way.output_tokens:,} output tokens at the stated prices"
                ),
                source=user(workload.origins.get("prices", "prices")),
            )
            for way in cost.ways
            if way.usd is not None
        ]
    return tuple(found)


_KEYS = {PASSAGES: "rag", WHOLE: "full_context", BOUNDED: "bounded_history"}


def _compared(scope: str, cost: ClassCost, where: str, workload: Workload) -> list[Figure]:
    passages, whole = cost.ways
    inputs = (f"{scope}.full_context_tokens", f"{scope}.rag_tokens")
    figures = [
        Figure(
            id=inputs[0],
            value=whole.prompt_tokens,
            unit="tokens",
            formula="median prompt with the whole document",
            source=user(where),
        ),
        Figure(
            id=inputs[1],
            value=passages.prompt_tokens,
            unit="tokens",
            formula="question + rag.top_k x rag.chunk_tokens",
            source=user(workload.origins.get("rag", "rag")),
        ),
        Figure(
            id=f"{scope}.full_context_to_rag_ratio",
            value=round(whole.prompt_tokens / passages.prompt_tokens, 1),
            unit="times",
            formula="full_context_tokens / rag_tokens",
            inputs=inputs,
            source=formula("retrieval-cost"),
        ),
    ]
    turns = (
        (
            "break_even_requests_per_document",
            cost.break_even_requests_per_document,
            "requests",
            "smallest n with first read + (n - 1) x read again from the cache <= n x passages",
        ),
        (
            "break_even_retrieval_quality",
            cost.break_even_retrieval_quality,
            "share",
            "least s with passages + (1 - s) x (first read + answer in vain) <= whole document",
        ),
    )
    figures += [
        Figure(
            id=f"{scope}.{name}",
            value=value,
            unit=unit,
            formula=text,
            inputs=inputs,
            source=formula("retrieval-cost"),
        )
        for name, value, unit, text in turns
        if value is not None
    ]
    return figures


def cost_notes(costs: tuple[ClassCost, ...], prices: TokenPrices) -> tuple[str, ...]:
    """Retrieval against the whole document in a sentence per class."""
    return tuple(_note(cost, prices) for cost in costs if len(cost.ways) > 1)


def _note(cost: ClassCost, prices: TokenPrices) -> str:
    passages, whole = cost.ways
    text = (
        f"Class {cost.request_class}: {passages.prompt_tokens:,} prompt tokens with retrieval, "
        f"{whole.prompt_tokens:,} with the whole document "
        f"({whole.prompt_tokens / passages.prompt_tokens:.1f} times)"
    )
    if passages.usd is not None and whole.usd is not None:
        text += f"; at the stated prices {passages.usd:.4f} against {whole.usd:.4f} USD per request"
    reuse = cost.break_even_requests_per_document
    if reuse is None:
        text += ". Prefix caching never makes the whole document the cheaper one"
    else:
        text += (
            f". From {format_tokens(reuse)} requests about one document while it stays in the "
            "prefix cache, the whole document is cheaper"
            + ("" if whole.route else ", if an instance of this plan could read it")
        )
    quality = cost.break_even_retrieval_quality
    if quality is not None:
        text += f"; before that, retrieval pays if it answers at least {quality:.1%} of them"
    if prices.input is not None and not prices.cached_input:
        text += (
            "; cached tokens count nothing, as vLLM does not compute them again "
            "(prices.cached_input_usd_per_million_tokens says otherwise)"
        )
    return text + "."
