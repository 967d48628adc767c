"""KV cache pages, groups and blocks per request, as vLLM 0.32/0.33 builds them.

Knows layers, not models: the caller says what each layer keeps. Sources are files of the vLLM
0.33.0 package. No layer kind is guessed; kinds that are not listed here are refused upstream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.types.model import KVCacheSpec, KVCacheSpecKind
from vllm_advisor.units import ceil_div

FULL = KVCacheSpecKind.FULL_ATTENTION
SLIDING = KVCacheSpecKind.SLIDING_WINDOW
CHUNKED = KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION
MLA = KVCacheSpecKind.MLA_ATTENTION

# Bytes of one cached element (vllm/utils/torch_utils.py#STR_DTYPE_TO_TORCH_DTYPE).
_ELEMENT_BYTES = {
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCacheSettings:
    """What of the engine's arguments changes the KV cache.

    ``in_flight_tokens`` are the tokens scheduled but not yet settled: concurrent batches times
    ``max_num_batched_tokens`` (vllm/config/vllm.py#max_in_flight_tokens); windows keep them.
    """

    cache_dtype: str
    model_dtype_bytes: int
    block_size: int
    max_model_len: int
    in_flight_tokens: int
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    hybrid_manager: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPage:
    """One layer's cache on one rank: equal values share a block table."""

    kind: KVCacheSpecKind
    window: int | None
    block_size: int
    page_bytes: int  # bytes of one block


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers (by index) that use one block table; ``page`` is their common page.

    In a uniform group pages differ in size: ``page_bytes`` then maps each layer.
    """

    page: LayerPage
    layers: tuple[int, ...]
    page_bytes: tuple[int, ...]


def element_bytes(cache_dtype: str, model_dtype_bytes: int) -> int:
    """Bytes of one cached element for a ``--kv-cache-dtype``; ``auto`` is the model's dtype.

    Raises:
        NotModelledError: a format whose layout is not a plain element size.
    """
    if cache_dtype == "auto":
        return model_dtype_bytes
    if cache_dtype not in _ELEMENT_BYTES:
        raise NotModelledError(
            f"the KV cache layout of --kv-cache-dtype {cache_dtype} is not modelled",
            where="--kv-cache-dtype",
            fix=f"one of auto, {', '.join(sorted(_ELEMENT_BYTES))}",
        )
    return _ELEMENT_BYTES[cache_dtype]


def kv_heads_per_rank(num_kv_heads: int, tensor_parallel_size: int) -> int:
    """KV heads one rank holds: divided by TP, replicated once TP exceeds them.

    Source: vllm/config/model.py#get_num_kv_heads, divisibility from models/llama.py.

    Raises:
        InfeasibleError: neither divides the other.
    """
    if num_kv_heads % tensor_parallel_size and tensor_parallel_size % num_kv_heads:
        raise InfeasibleError(
            f"{num_kv_heads} KV heads cannot be spread over tensor_parallel_size "
            f"{tensor_parallel_size}: one has to divide the other",
            where="--tensor-parallel-size",
            fix="use a tensor_parallel_size that divides the KV heads, or a multiple of them",
        )
    return max(1, num_kv_heads // tensor_parallel_size)


def layer_page(spec: KVCacheSpec, settings: KVCacheSettings) -> LayerPage:
    """Page of one layer: block_size x heads x (head_size + head_size_v) x element bytes.

    MLA keeps one vector per token on every rank. Source:
    vllm/v1/kv_cache_interface.py#AttentionSpec, #MLAAttentionSpec.
    """
    size = element_bytes(settings.cache_dtype, settings.model_dtype_bytes)
    if spec.kind is MLA:
        heads, content = 1, spec.head_size
    else:
        heads = kv_heads_per_rank(spec.num_kv_heads, settings.tensor_parallel_size)
        content = spec.head_size + spec.head_size_v
    return LayerPage(
        kind=spec.kind,
        window=spec.window,
        block_size=settings.block_size,
        page_bytes=settings.block_size * heads * content * size,
    )


def group_layers(pages: tuple[LayerPage | None, ...], *, hybrid_manager: bool) -> tuple[Group, ...]:
    """Groups of layers as vllm/v1/core/kv_cache_planning.py#get_kv_cache_groups makes them.

    Args:
        pages: one per layer; ``None`` for a layer that keeps nothing.
        hybrid_manager: False promotes windows to full attention, as
            ``--disable-hybrid-kv-cache-manager`` does.
    """
    kept = [(i, p) for i, p in enumerate(pages) if p is not None]
    if not kept:
        return ()
    if not hybrid_manager and len({p.kind for _, p in kept}) > 1:
        kept = [
            (i, replace(p, kind=FULL, window=None) if p.kind in (SLIDING, CHUNKED) else p)
            for i, p in kept
        ]
    if len({(p.kind, p.window) for _, p in kept}) == 1:
        return (_group(kept),)  # one type; pages of different size make a uniform group
    largest = max(p.page_bytes for _, p in kept)
    kept = [(i, _unify(p, largest)) for i, p in kept]
    by_type: dict[LayerPage, list[tuple[int, LayerPage]]] = {}
    for index, page in kept:
        by_type.setdefault(page, []).append((index, page))
    counts = [len(layers) for layers in by_type.values()]
    # vllm/v1/core/kv_cache_planning.py: near-equal types are padded up instead of split.
    size = max(counts) if max(counts) * 2 < min(counts) * 3 else min(counts)
    groups = []
    for layers in by_type.values():
        number = ceil_div(len(layers), size)
        groups += [_group(layers[start::number]) for start in range(number)]
    return tuple(groups)


def blocks_per_request(group: Group, settings: KVCacheSettings, length: int | None = None) -> int:
    """Blocks that one request of ``length`` tokens (default max_model_len) takes in a group.

    Full and MLA: ceil(ceil(L / dcp) / block). Sliding: ceil(min(W - 1 + in flight, L) / block) + 1,
    the extra block because a window may start inside one. Chunked: ceil(min(chunk + in flight, L)
    / block). Source: vllm/v1/kv_cache_interface.py#max_memory_usage_bytes of each spec.
    """
    tokens = settings.max_model_len if length is None else length
    page = group.page
    if page.kind is SLIDING:
        kept = min((page.window or 0) - 1 + settings.in_flight_tokens, tokens)
        return ceil_div(kept, page.block_size) + 1
    if page.kind is CHUNKED:
        kept = min((page.window or 0) + settings.in_flight_tokens, tokens)
        return ceil_div(kept, page.block_size)
    return ceil_div(ceil_div(tokens, settings.decode_context_parallel_size), page.block_size)


def stage_layers(num_layers: int, stages: int) -> tuple[range, ...]:
    """Layers of each pipeline stage: equal shares, the remainder to the stages before the last.

    Source: vllm/distributed/utils.py#get_pp_indices.
    """
    sizes = [num_layers // stages] * stages
    for extra in range(num_layers % stages):
        sizes[-(extra + 2)] += 1
    starts = [sum(sizes[:i]) for i in range(stages)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def bytes_per_block(groups: tuple[Group, ...], layers: range) -> int:
    """Bytes one block id takes on a stage: the fullest group's layers there, summed."""
    return max(
        sum(b for i, b in zip(g.layers, g.page_bytes, strict=True) if i in layers) for g in groups
    )


def tokens_line(num_blocks: int, per_request: int, max_model_len: int) -> tuple[int, float]:
    """vLLM's log line: (KV cache tokens, maximum concurrency).

    tokens = int(num_blocks / blocks per request x max_model_len), computed in floating point as
    vllm/v1/core/kv_cache_utils.py#get_kv_cache_capacity does, so that even rounding is equal.
    """
    concurrency = num_blocks / per_request
    return int(concurrency * max_model_len), concurrency


def bytes_per_token(groups: tuple[Group, ...], dcp: int) -> int | None:
    """Bytes per token and rank where that is a constant (full and MLA layers only), else None."""
    if any(g.page.kind in (SLIDING, CHUNKED) for g in groups) or not groups:
        return None
    pages = [Fraction(sum(g.page_bytes), g.page.block_size * dcp) for g in groups]
    return math.ceil(sum(pages, Fraction(0)))


def _group(layers: list[tuple[int, LayerPage]]) -> Group:
    return Group(
        page=layers[0][1],
        layers=tuple(i for i, _ in layers),
        page_bytes=tuple(p.page_bytes for _, p in layers),
    )


def _unify(page: LayerPage, largest: int) -> LayerPage:
    """Bring a smaller page to the largest: longer blocks if they divide, else padding.

    Source: vllm/v1/core/kv_cache_planning.py#unify_kv_cache_spec_page_size.
    """
    if page.page_bytes == largest:
        return page
    ratio, rest = divmod(largest, page.page_bytes)
    if rest:
        raise NotModelledError(
            f"KV cache pages of {page.page_bytes} and {largest} bytes do not divide each other",
            fix="this mix of layers is not modelled; take the figures from vLLM's start-up log",
        )
    return replace(page, block_size=page.block_size * ratio, page_bytes=largest)
