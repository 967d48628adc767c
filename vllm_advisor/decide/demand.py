"""From request classes to what an instance has to hold: lengths and requests at once."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.decide.tree import Strategy
from vllm_advisor.sizing.load import requests_at_once
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import RequestClass, Workload

_ASSUMED_QUESTION_TOKENS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one class asks of the instance that serves it.

    ``typical_tokens`` is prompt and output at the 95th percentile: every concurrent request is
    counted with it. ``max_tokens`` is what ``max_model_len`` has to hold.
    """

    request: RequestClass
    strategy: Strategy
    prompt_tokens: int  # at the 95th percentile, as it reaches vLLM
    typical_tokens: int
    max_tokens: int
    concurrency: int
    shared_prefix_tokens: int
    concurrency_formula: str
    retrieved_tokens: int = 0  # passages in the prompt, where retrieval makes it
    share: float = 1.0  # of the class's requests


def class_demand(
    request: RequestClass, strategy: Strategy, workload: Workload
) -> tuple[Demand, tuple[Assumption, ...]]:
    """The demand of one class under its strategy."""
    prompt_p95, prompt_max = request.prompt_tokens.p95, request.prompt_tokens.max
    notes: list[Assumption] = []
    if strategy is Strategy.RAG_FIRST:
        question = workload.rag.question_tokens
        if question is None:
            question = _ASSUMED_QUESTION_TOKENS
            notes.append(
                Assumption(
                    id=f"{request.name}.question-tokens",
                    text=f"class {request.name}: question and instructions beside the retrieved "
                    f"passages take {question} tokens (rag.question_tokens is not given)",
                )
            )
        prompt_p95 = prompt_max = question + workload.rag.retrieved_tokens
    elif strategy is Strategy.BOUNDED_HISTORY:
        limit = workload.constraints.short_context_tokens - request.output_tokens.max
        prompt_p95, prompt_max = min(prompt_p95, limit), min(prompt_max, limit)
    concurrency, formula, time_notes = requests_at_once(request)
    return (
        Demand(
            request=request,
            strategy=strategy,
            prompt_tokens=prompt_p95,
            typical_tokens=prompt_p95 + request.output_tokens.p95,
            max_tokens=prompt_max + request.output_tokens.max,
            concurrency=concurrency,
            shared_prefix_tokens=min(request.shared_prefix_tokens, prompt_p95),
            concurrency_formula=formula,
            retrieved_tokens=workload.rag.retrieved_tokens if strategy is Strategy.RAG_FIRST else 0,
        ),
        (*notes, *time_notes),
    )
