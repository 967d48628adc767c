"""From bytes for the KV cache to vLLM's two figures: tokens and maximum concurrency."""

from __future__ import annotations

from vllm_advisor.sizing.kv_cache import (
    Group,
    KVCacheSettings,
    blocks_per_request,
    bytes_per_block,
    bytes_per_token,
    group_layers,
    layer_page,
    stage_layers,
    tokens_line,
)
from vllm_advisor.types.model import KVCacheSpec
from vllm_advisor.types.sizing import Capacity, KVCacheGroup


class CacheLayout:
    """The groups of one model under one setting; answers for any number of bytes.

    Built once, asked often: a plan tries many budgets on one layout.
    """

    def __init__(self, specs: tuple[KVCacheSpec | None, ...], settings: KVCacheSettings) -> None:
        pages = tuple(None if s is None else layer_page(s, settings) for s in specs)
        self.settings = settings
        self.groups: tuple[Group, ...] = group_layers(pages, hybrid_manager=settings.hybrid_manager)
        stages = stage_layers(len(specs), settings.pipeline_parallel_size)
        self.stage_block_bytes = tuple(bytes_per_block(self.groups, s) for s in stages)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block id on the fullest stage."""
        return max(self.stage_block_bytes)

    def request_blocks(self, length: int | None = None) -> int:
        """Blocks a request of ``length`` tokens takes over all groups."""
        return sum(blocks_per_request(g, self.settings, length) for g in self.groups)

    def admits(self, available_bytes: int, length: int) -> bool:
        """vLLM's start-up check: the request and one spare (null) block have to fit.

        Source: vllm/v1/core/kv_cache_planning.py#_check_enough_kv_cache_memory.
        """
        return all(
            b * (self.request_blocks(length) + 1) <= available_bytes for b in self.stage_block_bytes
        )

    def longest(self, available_bytes: int, upper: int) -> int:
        """Longest request that would start, up to ``upper``; 0 if not even one token does."""
        if self.admits(available_bytes, upper):
            return upper
        low, high = 0, upper  # admits(low) or low == 0; not admits(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.admits(available_bytes, middle):
                low = middle
            else:
                high = middle
        return low

    def capacity(self, available_bytes: int, *, longest_asked: int | None = None) -> Capacity:
        """Everything vLLM prints about ``available_bytes`` of KV cache per rank."""
        settings = self.settings
        available = max(available_bytes, 0)
        num_blocks = min(available // b for b in self.stage_block_bytes)
        per_request = self.request_blocks()
        tokens, concurrency = tokens_line(num_blocks, per_request, settings.max_model_len)
        upper = max(settings.max_model_len, longest_asked or 0)
        return Capacity(
            available_bytes=available_bytes,
            max_model_len=settings.max_model_len,
            num_gpu_blocks=num_blocks,
            block_size=settings.block_size,
            bytes_per_block=self.block_bytes,
            blocks_per_request=per_request,
            tokens=tokens,
            max_concurrency=concurrency,
            bytes_per_token=bytes_per_token(self.groups, settings.decode_context_parallel_size),
            request_bytes=self.block_bytes * per_request,
            fits=self.admits(available_bytes, settings.max_model_len),
            estimated_max_model_len=self.longest(available_bytes, upper),
            groups=tuple(
                KVCacheGroup(
                    kind=g.page.kind.value,
                    num_layers=len(g.layers),
                    block_size=g.page.block_size,
                    page_size_bytes=g.page.page_bytes,
                    blocks_per_request=blocks_per_request(g, settings),
                    window=g.page.window,
                )
                for g in self.groups
            ),
        )
