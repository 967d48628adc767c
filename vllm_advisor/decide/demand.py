"""From request classes to what an instance has to hold: lengths and requests at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.decide.tree import Strategy
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.workload import RequestClass, Workload

# Time a request is expected to take where the workload states no target (milliseconds).
_ASSUMED_TTFT_MS = 2_000
_ASSUMED_ITL_MS = 40
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
    concurrency, formula, time_notes = _concurrency(request)
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


def _concurrency(request: RequestClass) -> tuple[int, str, tuple[Assumption, ...]]:
    """Requests in the system at once: given, or Little's law over the time targets."""
    if request.concurrent_requests is not None:
        return request.concurrent_requests, "as stated in the workload", ()
    rate = request.requests_per_second or 0.0
    slo = request.slo
    notes: tuple[Assumption, ...] = ()
    if slo.e2e_ms is not None:
        seconds = slo.e2e_ms / 1000
        basis = "the end-to-end target"
    else:
        ttft = slo.ttft_ms if slo.ttft_ms is not None else _ASSUMED_TTFT_MS
        itl = slo.itl_ms if slo.itl_ms is not None else _ASSUMED_ITL_MS
        seconds = (ttft + itl * request.output_tokens.p50) / 1000
        basis = "TTFT + ITL x median output"
        if slo.ttft_ms is None or slo.itl_ms is None:
            notes = (
                Assumption(
                    id=f"{request.name}.time-in-system",
                    text=f"class {request.name}: a request is taken to stay {seconds:.1f} s "
                    f"(TTFT {ttft:g} ms, {itl:g} ms per output token; what the workload does not "
                    "state is assumed)",
                ),
            )
    text = f"ceil({rate:g} requests/s x {seconds:.2f} s), Little's law over {basis}"
    return max(1, math.ceil(rate * seconds)), text, notes
