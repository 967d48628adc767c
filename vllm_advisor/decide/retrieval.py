"""What retrieval saves: the whole document against the retrieved passages, per request."""

from __future__ import annotations

from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.reasons import formula, user
from vllm_advisor.decide.tree import Strategy
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.workload import Needs, Workload

_MILLION = 1_000_000


def retrieval_figures(demands: tuple[Demand, ...], workload: Workload) -> tuple[Figure, ...]:
    """Prompt tokens (and their price, where one is given) of both ways, for lookup classes."""
    figures: list[Figure] = []
    price = workload.prices.input_usd_per_million_tokens
    for demand in demands:
        request = demand.request
        if request.needs is not Needs.LOOKUP or demand.strategy is not Strategy.RAG_FIRST:
            continue
        scope = f"cost.{request.name}"
        whole, passages = request.prompt_tokens.p50, demand.prompt_tokens
        figures += [
            Figure(
                id=f"{scope}.full_context_tokens",
                value=whole,
                unit="tokens",
                formula="median prompt with the whole document",
                source=user(request.where or "classes"),
            ),
            Figure(
                id=f"{scope}.rag_tokens",
                value=passages,
                unit="tokens",
                formula="question + rag.top_k x rag.chunk_tokens",
                source=user(workload.origins.get("rag", "rag")),
            ),
            Figure(
                id=f"{scope}.full_context_to_rag_ratio",
                value=round(whole / passages, 1),
                unit="times",
                formula="full_context_tokens / rag_tokens",
                inputs=(f"{scope}.full_context_tokens", f"{scope}.rag_tokens"),
                source=formula("retrieval-cost"),
            ),
        ]
        if price is None:
            continue
        for name, tokens in (("full_context", whole), ("rag", passages)):
            figures.append(
                Figure(
                    id=f"{scope}.{name}_usd",
                    value=round(tokens * price / _MILLION, 6),
                    unit="usd/request",
                    formula=f"{name}_tokens x {price:g} USD per million input tokens",
                    inputs=(f"{scope}.{name}_tokens",),
                    source=user(workload.origins.get("prices", "prices")),
                )
            )
    return tuple(figures)
