"""Seconds of one step of the engine: what it reads, computes and exchanges, and what it waits for.

    memory  = weights / (bandwidth x weight_read) + experts touched / (bandwidth x expert_read)
              + KV cache of the running sequences / (bandwidth x cache_read)
    compute = matrices / (peak x matrix) + experts / (peak x expert_matrix)
              + attention of the prompt tokens / (peak x attention)
    step    = (memory^3 + compute^3)^(1/3) + all-reduces + layers x layer + step
              + running sequences x sequence

Reading and computing overlap, and the longer one counts: the cubic sum is within 26 % of the larger
where both are equal and equal to it where they are far apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.sizing.step_work import StepWork, WeightFormat
from vllm_advisor.types.latency import LatencyConstants


@dataclass(frozen=True, slots=True)
class StepParts:
    """The parts of one step in seconds; ``seconds`` is the whole."""

    memory: float
    compute: float
    exchange: float
    overhead: float

    @property
    def seconds(self) -> float:
        """The step."""
        overlapped = math.cbrt(self.memory**3 + self.compute**3)
        return overlapped + self.exchange + self.overhead


def step_parts(
    work: StepWork,
    constants: LatencyConstants,
    *,
    sequences: float,
    context: float,
    prompt_tokens: float = 0.0,
    prompt_context: float = 0.0,
    prompt_engines: int = 1,
) -> StepParts:
    """One step of one data-parallel engine.

    Args:
        work: what it has to do.
        constants: how fast that goes.
        sequences: running sequences that get one token each.
        context: tokens each of them has so far, on average.
        prompt_tokens: tokens of prompts computed in the same step.
        prompt_context: tokens that each of those sees, on average: half of the prompt where it
            starts at its beginning.
        prompt_engines: data-parallel engines that read prompts at the same time.
    """
    c, tokens = constants, sequences + prompt_tokens
    reading = work.weight_bytes / (work.bandwidth * c.weight_read)
    if work.dense_format is WeightFormat.INT4:
        reading /= c.int4_read * (c.int4_blackwell if work.blackwell else 1.0)
    computing = tokens * work.dense_seconds / c.matrix
    computing += (sequences + (1 if prompt_tokens else 0)) * work.head_seconds / c.matrix
    if work.experts:
        everywhere = sequences * work.engines + prompt_tokens * prompt_engines
        missed = (1 - work.experts_per_token / work.experts) ** max(
            1.0, everywhere * c.expert_spread
        )
        read, matrix = c.expert_read, c.expert_matrix
        if work.expert_format is WeightFormat.INT4:
            slower = c.int4_blackwell if work.blackwell else 1.0
            read, matrix = read * c.int4_read * slower, matrix * c.expert_int4 * slower
        elif work.expert_format is WeightFormat.FP4:
            matrix *= c.expert_fp4
        reading += work.expert_bytes * (1 - missed) / (work.bandwidth * read)
        computing += everywhere * work.expert_seconds / matrix
    if sequences:
        cached = cache_bytes(work, context) + work.state_bytes
        reading += sequences * cached / (work.bandwidth * c.cache_read)
        computing += sequences * context * work.decode_flops / (work.peak * c.attention)
    if prompt_tokens:
        pairs = work.attention_flops * prompt_context
        pairs += sum(flops * min(prompt_context, w) for w, flops in work.window_flops)
        computing += prompt_tokens * pairs / (work.peak * c.attention)
    exchange = 0.0
    if work.ranks > 1:
        moved = 2 * tokens * work.reduced_bytes * (work.ranks - 1) / work.ranks
        hops = (1 + math.log2(work.ranks)) / 2
        exchange = work.reduces * (
            c.all_reduce * hops + moved / (work.link * (c.nvlink if work.nvlink else c.pcie))
        )
    return StepParts(
        memory=reading,
        compute=computing,
        exchange=exchange,
        overhead=work.layers * (c.layer + (c.prompt_layer if prompt_tokens else 0.0))
        + work.expert_layers * _expert_layer(work, c)
        + c.step
        + sequences * c.sequence,
    )


def _expert_layer(work: StepWork, constants: LatencyConstants) -> float:
    if work.expert_format is WeightFormat.FP4:
        return constants.expert_layer_fp4
    if work.expert_format is WeightFormat.INT4:
        return constants.expert_layer_int4
    return constants.expert_layer


def cache_bytes(work: StepWork, context: float) -> float:
    """Bytes of KV cache that one sequence's next token reads on a rank."""
    return sum(
        reads.bytes_per_token * (context if reads.window is None else min(context, reads.window))
        for reads in work.cache
    )
