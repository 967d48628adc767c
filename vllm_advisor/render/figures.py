"""The figures of one instance as plain data: the part that plans and size reports share."""

from __future__ import annotations

from typing import Any

from vllm_advisor.types.sizing import Capacity, InstanceFigures, MemoryBudget


def figures_dict(figures: InstanceFigures, configured: int) -> dict[str, Any]:
    """Memory per GPU, KV cache, context length and confidence of one instance.

    Args:
        figures: what ``sizing`` answered.
        configured: ``--max-model-len`` as it is set, in tokens.

    Returns:
        JSON types. ``memory`` is in bytes of one GPU (the fullest rank), ``None`` when no GPU was
        needed to answer. ``max_model_len.fits`` is the longest request that would start.
        ``headroom`` is false
        where the fitted overheads may miss (``may_miss_bytes``) by more than is left beside one
        request (``spare_bytes``). Everything in ``kv_cache`` is of one engine, as its log says it;
        ``total_tokens`` and ``total_concurrency`` are over all data-parallel ``engines``.
    """
    capacity = figures.capacity
    return {
        "memory": _memory(figures.budget) if figures.budget else None,
        "kv_cache": _kv_cache(capacity, figures),
        "max_model_len": {
            "configured": configured,
            "derived_limit": figures.derived_max_model_len,
            "fits": capacity.estimated_max_model_len,
        },
        "fits": figures.starts,
        "refusal": figures.refusal or None,
        "headroom": figures.headroom,
        "spare_bytes": figures.spare_bytes,
        "may_miss_bytes": figures.may_miss_bytes,
        "attention_backend": figures.attention_backend,
        "confidence": str(figures.confidence),
        "assumptions": [
            {"id": a.id, "text": a.text, "lowers_to": str(a.lowers_to)} for a in figures.assumptions
        ],
    }


def _memory(budget: MemoryBudget) -> dict[str, int]:
    return {
        "total": int(budget.total.value),
        "requested": int(budget.requested.value),
        "weights": int(budget.weights.value),
        "activations": int(budget.activations.value),
        "cuda_graphs": int(budget.cuda_graphs.value),
        "non_torch": int(budget.non_torch.value),
        "kv_cache": int(budget.kv_cache.value),
    }


def _kv_cache(capacity: Capacity, figures: InstanceFigures) -> dict[str, Any]:
    return {
        "tokens": capacity.tokens,
        "num_gpu_blocks": capacity.num_gpu_blocks,
        "block_size": capacity.block_size,
        "bytes_per_token": capacity.bytes_per_token,
        "available_bytes": capacity.available_bytes,
        "bytes_per_block": capacity.bytes_per_block,
        "blocks_per_request": capacity.blocks_per_request,
        "request_bytes": capacity.request_bytes,
        "max_concurrency": capacity.max_concurrency,
        "engines": figures.engines,
        "total_tokens": figures.total_tokens,
        "total_concurrency": figures.total_concurrency,
        "groups": [
            {
                "kind": group.kind,
                "num_layers": group.num_layers,
                "block_size": group.block_size,
                "page_size_bytes": group.page_size_bytes,
                "blocks_per_request": group.blocks_per_request,
                "window": group.window,
            }
            for group in capacity.groups
        ],
    }
