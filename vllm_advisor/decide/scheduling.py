"""Scheduler settings: batched tokens per step, sequences at once, long-prefill protection."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.decide.demand import Demand
from vllm_advisor.types.engine import BatchDefaults
from vllm_advisor.types.workload import Objective
from vllm_advisor.units import round_up

_TIGHT_ITL_MS = 100
_SMALL_CHUNK = 2048
_LONG_CHUNK = 8192
_THROUGHPUT_CHUNK = 16384
_SEQS_GRAIN = 8
_SEQS_HEADROOM = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A value for ``max_num_batched_tokens`` and why."""

    tokens: int
    reason: str


def chunk_for(
    demands: tuple[Demand, ...],
    defaults: BatchDefaults,
    *,
    long_documents: bool,
    timed: bool = False,
) -> Chunk:
    """How many tokens one step may carry; where steps are ``timed`` the most that is tried.

    Smaller chunks keep the time between tokens even while prompts are read; larger ones read
    prompts with fewer passes over the weights (docs: vLLM optimization and tuning, chunked
    prefill: 2048 for inter-token latency, above 8192 for throughput).
    """
    if all(d.request.objective is Objective.THROUGHPUT for d in demands):
        return Chunk(
            tokens=max(_THROUGHPUT_CHUNK, defaults.max_num_batched_tokens),
            reason="throughput above all: large chunks read prompts with fewer passes over the "
            "weights, and nobody waits for the next token",
        )
    tight = [d for d in demands if d.request.slo.itl_ms is not None]
    strict = [d for d in tight if (d.request.slo.itl_ms or 0) <= _TIGHT_ITL_MS]
    if strict and not timed:
        name = strict[0].request.name
        return Chunk(
            tokens=_SMALL_CHUNK,
            reason=f"class {name} asks for {strict[0].request.slo.itl_ms:g} ms between tokens: "
            "small prefill chunks keep every step short",
        )
    if long_documents:
        return Chunk(
            tokens=_LONG_CHUNK,
            reason="long prompts without a tight target between tokens: chunks of 8,192 read a "
            "document with few passes over the weights",
        )
    return Chunk(
        tokens=defaults.max_num_batched_tokens,
        reason="vLLM's default for this GPU; stated because it differs by GPU and version",
    )


def shared_chunk(chunk: Chunk, engines: int) -> Chunk:
    """The chunk of each of several data-parallel engines: together they read what one would."""
    tokens = max(_SMALL_CHUNK, chunk.tokens // engines)
    why = (
        f"experts get the tokens of all {engines} engines in one step, {tokens * engines:,} at "
        "most, and memory for as many is set aside at start-up"
    )
    if tokens == chunk.tokens:
        return Chunk(tokens=tokens, reason=f"{chunk.reason}; {why}")
    return Chunk(
        tokens=tokens,
        reason=f"a share of {chunk.tokens:,} for each engine, {_SMALL_CHUNK:,} at least: {why}",
    )


def sequences_for(concurrency: int, chunk: int) -> int:
    """``max_num_seqs``: the concurrency of one replica with a quarter more, in eights.

    Every sequence costs activation memory (FP32 logits of the profile run), so the default of 256
    or 1,024 is memory taken from the KV cache.
    """
    return min(max(round_up(int(concurrency * _SEQS_HEADROOM), _SEQS_GRAIN), _SEQS_GRAIN), chunk)


def small_chunk() -> int:
    """The smallest chunk worth trying: windowed layers keep two chunks beside their window."""
    return _SMALL_CHUNK
