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


def retrieval_notes(figures: tuple[Figure, ...]) -> tuple[str, ...]:
    """The saving in a sentence per class, from the figures above."""
    by_id = {f.id: f.value for f in figures}
    notes = []
    for key, ratio in by_id.items():
        if not key.endswith(".full_context_to_rag_ratio"):
            continue
        scope = key.removesuffix(".full_context_to_rag_ratio")
        text = (
            f"Class {scope.removeprefix('cost.')}: {by_id[f'{scope}.rag_tokens']:,} prompt tokens "
            f"with retrieval, {by_id[f'{scope}.full_context_tokens']:,} with the whole document "
            f"({ratio:g} times)"
        )
        usd = by_id.get(f"{scope}.rag_usd")
        if usd is not None:
            whole = by_id[f"{scope}.full_context_usd"]
            text += f"; at the stated price {usd:.4f} against {whole:.4f} USD per request"
        notes.append(text + ".")
    return tuple(notes)
