"""Whether the memory of a candidate holds what is asked of it."""

from __future__ import annotations

from vllm_advisor.decide.demand import Demand
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.load import Load, blocks_needed
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.units import format_bytes, format_tokens


def needed_blocks(demands: tuple[Demand, ...], layout: CacheLayout, engines: int) -> int:
    """Blocks one engine needs for its share of every demand."""
    loads = (
        Load(tokens=d.typical_tokens, at_once=d.concurrency, shared=d.shared_prefix_tokens)
        for d in demands
    )
    return blocks_needed(layout, loads, engines)


def why_not_held(
    figures: InstanceFigures,
    layout: CacheLayout,
    demands: tuple[Demand, ...],
    needed: int,
    *,
    engines: int,
    spare: int,
) -> str:
    """Why the memory does not hold the demand, or nothing.

    Args:
        figures: of one engine.
        layout: of its KV cache.
        demands: of all engines together.
        needed: blocks that one engine needs for its share.
        engines: of all replicas.
        spare: bytes that are kept free: what the fitted overheads may miss by.
    """
    capacity = figures.capacity
    total = sum(d.concurrency for d in demands)
    if figures.budget is not None and figures.budget.kv_cache.value <= 0:
        return (
            f"weights and overhead take all of the memory asked for "
            f"({format_bytes(int(figures.budget.requested.value))} per GPU, "
            f"{format_bytes(-int(figures.budget.kv_cache.value))} too little)"
        )
    if not layout.admits(capacity.available_bytes - spare, capacity.max_model_len):
        return (
            f"one request of {format_tokens(capacity.max_model_len)} tokens needs "
            f"{format_bytes(capacity.request_bytes)} of KV cache per GPU, "
            f"{format_bytes(capacity.available_bytes)} are free, {format_bytes(spare)} of them "
            f"kept for what the estimate may miss (longest that fits: "
            f"{format_tokens(capacity.estimated_max_model_len)})"
        )
    if figures.refusal:
        return f"vLLM does not start: {figures.refusal}"
    blocks = capacity.num_gpu_blocks - spare // layout.block_bytes
    if needed > blocks:
        data = figures.engines
        share = "" if engines == data else f" over {engines // data} replicas"
        if data > 1:
            share += f" of {data} engines" if share else f" over {data} engines"
        return (
            f"{total} requests at once{share} need {format_tokens(needed)} KV cache blocks"
            f"{' each' if share else ''}, {format_tokens(blocks)} are safe to count on"
        )
    return ""
