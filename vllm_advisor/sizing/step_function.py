"""The seconds of a step as one function of its numbers, for those who ask hundreds of thousands.

The same formula as :func:`~vllm_advisor.sizing.step_time.step_parts`, with all that does not change
from step to step worked out once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from vllm_advisor.sizing.step_time import cache_bytes, step_parts
from vllm_advisor.sizing.step_work import StepWork
from vllm_advisor.types.latency import LatencyConstants

# sequences, context, prompt tokens, prompt context, prompt tokens elsewhere -> seconds
StepSeconds = Callable[[float, float, float, float, float], float]


def step_function(work: StepWork, constants: LatencyConstants) -> StepSeconds:
    """``step_parts(...).seconds`` of the numbers of a step.

    These are sequences, context, prompt tokens, prompt context, and the prompt tokens that the
    other data-parallel engines bring to the experts in the same step, all of them together.

    The coefficients are taken from ``step_parts`` itself, part by part, so that there is one
    formula: each part is linear in what it is asked about, but for the experts that a step touches
    and for windows.

    Args:
        work: what a step has to do.
        constants: how fast that goes.
    """
    dense = replace(work, experts=0, expert_bytes=0, expert_seconds=0.0)
    idle = step_parts(dense, constants, sequences=0, context=0)
    blind = replace(dense, attention_flops=0.0, window_flops=())
    prompt = step_parts(blind, constants, sequences=0, context=0, prompt_tokens=1)
    prompts = step_parts(blind, constants, sequences=0, context=0, prompt_tokens=2)
    one = step_parts(dense, constants, sequences=1, context=0)
    token = prompts.compute - prompt.compute
    head = prompt.compute - token
    moved = prompts.exchange - prompt.exchange
    prompt_overhead = prompt.overhead - idle.overhead
    sequence_overhead = one.overhead - idle.overhead
    cache_rate = work.bandwidth * constants.cache_read
    state = work.state_bytes / cache_rate
    decode = work.decode_flops / (work.peak * constants.attention)
    full = sum(r.bytes_per_token for r in work.cache if r.window is None) / cache_rate
    windowed = any(r.window is not None for r in work.cache)
    pair = work.attention_flops / (work.peak * constants.attention)
    windows = [(w, f / (work.peak * constants.attention)) for w, f in work.window_flops]
    read_all, computed, missed, spread = _experts(work, constants)
    engines, cbrt = work.engines, math.cbrt
    reading, exchange, overhead = idle.memory, idle.exchange, idle.overhead

    def seconds(
        sequences: float,
        context: float,
        prompt_tokens: float,
        prompt_context: float,
        elsewhere: float,
    ) -> float:
        tokens = sequences + prompt_tokens
        memory, compute = reading, tokens * token + sequences * head
        fixed = exchange + overhead + tokens * moved + sequences * sequence_overhead
        if sequences:
            cached = cache_bytes(work, context) / cache_rate if windowed else full * context
            memory += sequences * (cached + state)
            compute += sequences * context * decode
        if prompt_tokens:
            pairs = pair * prompt_context
            for window, flops in windows:
                pairs += flops * min(prompt_context, window)
            compute += head + prompt_tokens * pairs
            fixed += prompt_overhead
        if computed:
            everywhere = sequences * engines + prompt_tokens + elsewhere
            memory += read_all * (1 - missed ** max(1.0, everywhere * spread))
            compute += everywhere * computed
        return cbrt(memory**3 + compute**3) + fixed

    return seconds


def _experts(work: StepWork, constants: LatencyConstants) -> tuple[float, float, float, float]:
    """Seconds of reading all experts and of computing a token, the share a token misses, spread."""
    if not work.experts:
        return 0.0, 0.0, 0.0, 0.0
    missed = 1 - work.experts_per_token / work.experts
    spread = constants.expert_spread
    few = replace(work, weight_bytes=0, dense_seconds=0.0, head_seconds=0.0, engines=1)
    bare = replace(few, cache=(), state_bytes=0, decode_flops=0.0)
    one = step_parts(bare, constants, sequences=1, context=0)
    touched = 1 - missed ** max(1.0, spread)
    return one.memory / touched, one.compute, missed, spread
