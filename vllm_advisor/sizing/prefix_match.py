"""What vLLM refuses of ``--prefix-match-unit``, once layers are grouped."""

from __future__ import annotations

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import MAMBA

_FLAG = "--prefix-match-unit"


def check_prefix_match_unit(layout: CacheLayout, unit: int | None, *, hashed: bool) -> None:
    """Raise what vLLM raises for this many tokens per block hash.

    One group is found again by whole blocks only; of several, the unit has to divide every block.
    States that are not cached at block boundaries switch the finer unit off.
    Source: vllm/v1/core/kv_cache_utils.py#resolve_kv_cache_block_sizes.

    Args:
        layout: the cache groups.
        unit: ``--prefix-match-unit`` in tokens, ``None`` where it is not given.
        hashed: blocks are hashed at all: prefix caching is on or a KV connector is used.

    Raises:
        InfeasibleError: vLLM refuses the unit.
    """
    if unit is None or not hashed or not layout.groups:
        return
    settings, pages = layout.settings, [group.page for group in layout.groups]
    if len(pages) == 1:
        shards = 1 if pages[0].kind is MAMBA else settings.decode_context_parallel_size
        block = layout.block_size * shards
        if unit != block:
            raise InfeasibleError(
                f"Invalid prefix_match_unit={unit}; with a single KV cache group, prefix-cache "
                f"hits land on the block size ({block}).",
                where=_FLAG,
                fix=f"leave {_FLAG} out, or set it to {block}",
            )
        return
    if any(page.kind is MAMBA for page in pages) and not settings.prefix_caching:
        return
    sizes = [
        page.block_size * (1 if page.kind is MAMBA else settings.decode_context_parallel_size)
        for page in pages
    ]
    if any(size % unit for size in sizes):
        raise InfeasibleError(
            f"Invalid prefix_match_unit={unit}; prefix-cacheable KV cache group block sizes must "
            f"be divisible by prefix_match_unit. Got group block sizes={sizes}.",
            where=_FLAG,
            fix=f"leave {_FLAG} out, or a divisor of {min(sizes)}",
        )
