"""Caches of sparse attention: index keys, and DeepSeek-V4's compressed layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.types.model import KVCacheSpec, KVCacheSpecKind

_INDEX_SCALE_BYTES = 4  # one FP32 scale for 128 FP8 elements of an index key
_INDEX_GROUP = 128
# DeepSeek-V4 (vllm/models/deepseek_v4/attention.py): FP8 entries with inline scales, FP32
# compressor states, pages rounded up to the row size of its kernels.
_V4_ENTRY_BYTES = 584
_V4_ALIGNMENT = 576
_V4_WINDOW_BLOCK = 64
_FP32 = 4


def with_indexers(
    mla: KVCacheSpec, config: dict[str, Any], count: int
) -> tuple[tuple[KVCacheSpec, ...], ...]:
    """MLA layers, each with its indexer's cache where the model has sparse attention.

    ``indexer_types`` marks layers that share the indices of an earlier one and keep no keys.
    Source: vllm/model_executor/models/deepseek_v2.py#DeepseekV32IndexerCache.
    """
    if not config.get("index_topk"):
        return ((mla,),) * count
    mla = replace(mla, sparse=True)
    size = int(config.get("index_head_dim") or _INDEX_GROUP)
    content = size + size // _INDEX_GROUP * _INDEX_SCALE_BYTES
    keys = KVCacheSpec(
        kind=KVCacheSpecKind.MLA_ATTENTION,
        num_kv_heads=1,
        head_size=content,
        head_size_v=0,
        content_bytes=content,
    )
    types = config.get("indexer_types") or ["full"] * count
    return tuple((keys, mla) if kind == "full" else (mla,) for kind in types[:count])


def with_block_indexers(
    layers: tuple[tuple[KVCacheSpec, ...], ...], index: dict[str, Any], dtype_bytes: int
) -> tuple[tuple[KVCacheSpec, ...], ...]:
    """Full attention layers, each sparse one with an index key per token in the model's dtype.

    Source: vllm/models/minimax_m3/common/indexer.py.
    """
    size = int(index["sparse_index_dim"])
    keys = KVCacheSpec(
        kind=KVCacheSpecKind.MLA_ATTENTION,
        num_kv_heads=1,
        head_size=size,
        head_size_v=0,
        content_bytes=size * dtype_bytes,
    )
    sparse = index.get("sparse_attention_freq") or [1] * len(layers)
    return tuple((*of, keys) if on else of for of, on in zip(layers, sparse, strict=False))


def deepseek_v4_layers(config: dict[str, Any], count: int) -> tuple[tuple[KVCacheSpec, ...], ...]:
    """A window for every layer; compressed entries and compressor states by ``compress_ratios``."""
    ratios = list(config["compress_ratios"])[:count]
    return tuple(_v4_layer(config, int(ratio)) for ratio in ratios)


def _v4_layer(config: dict[str, Any], ratio: int) -> tuple[KVCacheSpec, ...]:
    head = int(config["head_dim"])
    window = _v4(
        KVCacheSpecKind.SLIDING_WINDOW_MLA,
        head,
        _V4_ENTRY_BYTES,
        block=_V4_WINDOW_BLOCK,
        window=int(config["sliding_window"]),
    )
    if ratio <= 1:
        return (window,)
    entries = _v4(KVCacheSpecKind.MLA_ATTENTION, head, _V4_ENTRY_BYTES, per_entry=ratio)
    if ratio > 4:  # one state of 2 heads per token of the window, no indexer
        state = _v4_state(2 * head, block=8, window=ratio)
        return (window, entries, state)
    index = int(config["index_head_dim"])
    content = index + index // _INDEX_GROUP * _INDEX_SCALE_BYTES
    keys = _v4(KVCacheSpecKind.MLA_ATTENTION, content, content, per_entry=ratio)
    return (
        window,
        keys,
        _v4_state(4 * index, block=4, window=2 * ratio),
        entries,
        _v4_state(4 * head, block=4, window=2 * ratio),
    )


def _v4(
    kind: KVCacheSpecKind,
    head: int,
    content: int,
    *,
    block: int | None = None,
    window: int | None = None,
    per_entry: int = 1,
) -> KVCacheSpec:
    return KVCacheSpec(
        kind=kind,
        num_kv_heads=1,
        head_size=head,
        head_size_v=0,
        window=window,
        content_bytes=content,
        tokens_per_entry=per_entry,
        block_size=block,
        alignment=_V4_ALIGNMENT,
    )


def _v4_state(elements: int, *, block: int, window: int) -> KVCacheSpec:
    return _v4(
        KVCacheSpecKind.SLIDING_WINDOW_MLA, elements, elements * _FP32, block=block, window=window
    )
