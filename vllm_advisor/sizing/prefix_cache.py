"""How much of a shared prefix the KV cache holds once for all requests."""

from __future__ import annotations

import math

from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.types.model import KVCacheSpecKind


def prefix_block_tokens(layout: CacheLayout) -> int:
    """Tokens of a prefix are found again in steps of this many.

    A hit has to end where every group has a block end: the least common multiple of their block
    sizes, times the decode context parallel size for attention. Recurrent layers make blocks of
    hundreds to thousands of tokens, as large as a state, and their states are kept at block ends
    (``mamba_cache_mode`` is ``align`` where prefix caching is on). Source:
    vllm/v1/core/kv_cache_utils.py#resolve_kv_cache_block_sizes, without ``--prefix-match-unit``.
    """
    return math.lcm(*(_span(layout, g.page.kind, g.page.block_size) for g in layout.groups))


def shared_prefix_blocks(layout: CacheLayout, tokens: int) -> int:
    """Blocks of a shared prefix that prefix caching holds once for all requests.

    Only whole blocks are shared (vllm/v1/core/block_pool.py), and only where every block stays:
    windowed and recurrent layers are counted in full for each request.
    """
    found = tokens // prefix_block_tokens(layout) * prefix_block_tokens(layout)
    return sum(
        found // _span(layout, g.page.kind, g.page.block_size)
        for g in layout.groups
        if g.page.window is None and g.page.kind is not KVCacheSpecKind.MAMBA
    )


def _span(layout: CacheLayout, kind: KVCacheSpecKind, block_size: int) -> int:
    """Tokens of a request that one block covers over all context-parallel ranks."""
    if kind is KVCacheSpecKind.MAMBA:
        return block_size
    return block_size * layout.settings.decode_context_parallel_size
