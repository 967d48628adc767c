"""From bytes for the KV cache to vLLM's two figures: tokens and maximum concurrency."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.sizing.kv_cache import (
    MAMBA,
    KVCacheSettings,
    aligned_block_size,
    layer_page,
    stage_layers,
)
from vllm_advisor.sizing.kv_groups import (
    Cached,
    Group,
    bytes_per_block,
    bytes_per_token,
    group_layers,
    tokens_line,
)
from vllm_advisor.sizing.skipped_layers import (
    own_block_size,
    primary_block_size,
    stays_whole,
)
from vllm_advisor.types.model import KVCacheSpec
from vllm_advisor.types.sizing import Capacity, KVCacheGroup

Layers = tuple[tuple[KVCacheSpec, ...], ...]


def _nothing_cached(available_bytes: int, block_size: int, max_model_len: int) -> Capacity:
    """Of a model whose every token sees every other (vllm/v1/core/kv_cache_planning.py).

    vLLM keeps one block id, allocates nothing and asks for no memory.
    """
    return Capacity(
        available_bytes=available_bytes,
        max_model_len=max_model_len,
        num_gpu_blocks=1,
        block_size=block_size,
        bytes_per_block=0,
        blocks_per_request=0,
        tokens=0,
        max_concurrency=0.0,
        bytes_per_token=None,
        request_bytes=0,
        fits=True,
        estimated_max_model_len=max_model_len,
        groups=(),
    )


class CacheLayout:
    """The groups of one model under one setting; answers for any number of bytes.

    Built once, asked often: a plan tries many budgets on one layout.
    """

    def __init__(self, layers: Layers, settings: KVCacheSettings, *, draft: Layers = ()) -> None:
        """``draft`` are the layers of a draft model, behind those of the last pipeline stage."""
        self.settings = settings
        aligned = aligned_block_size(tuple(s for of in layers for s in of), settings)
        self.block_size = primary_block_size(aligned, layers, settings)
        caches = (*self._caches(layers), *self._draft_caches(draft, len(layers)))
        self.groups: tuple[Group, ...] = group_layers(caches, settings)
        *stages, last = stage_layers(len(layers), settings.pipeline_parallel_size)
        stages.append(range(last.start, last.stop + len(draft)))
        self.stage_block_bytes = (
            tuple(
                bytes_per_block(self.groups, stage, block_outermost=settings.block_outermost)
                for stage in stages
            )
            if self.groups
            else (0,)
        )

    def _draft_caches(self, layers: Layers, start: int) -> tuple[Cached, ...]:
        return tuple(
            (index, layer_page(spec, self.settings, self.block_size))
            for index, of in enumerate(layers, start)
            for spec in of
        )

    def _caches(self, layers: Layers) -> tuple[Cached, ...]:
        """One page per cache."""
        settings, block = self.settings, self.block_size
        plain = replace(settings, cache_dtype="auto")
        return tuple(
            (
                index,
                layer_page(spec, plain, own_block_size(spec, settings, block))
                if stays_whole(index, spec, layers, settings)
                else layer_page(spec, settings, block),
            )
            for index, of in enumerate(layers)
            for spec in of
        )

    @property
    def recurrent(self) -> bool:
        """Some layers keep states, of which every running sequence needs one block."""
        return any(g.page.kind is MAMBA for g in self.groups)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block id on the fullest stage."""
        return max(self.stage_block_bytes)

    def request_blocks(self, length: int | None = None) -> int:
        """Blocks a request of ``length`` tokens takes over all groups."""
        return sum(g.blocks(self.settings, length) for g in self.groups)

    def admits(self, available_bytes: int, length: int, *, block_bytes: int | None = None) -> bool:
        """vLLM's start-up check: the request and one spare (null) block have to fit.

        ``block_bytes`` asks for one stage only; else the fullest decides. Source:
        vllm/v1/core/kv_cache_planning.py#_check_enough_kv_cache_memory.
        """
        return (block_bytes or self.block_bytes) * (
            self.request_blocks(length) + 1
        ) <= available_bytes

    def longest(self, available_bytes: int, upper: int, *, block_bytes: int | None = None) -> int:
        """Longest request that would start, up to ``upper``; 0 if not even one token does."""
        if self.admits(available_bytes, upper, block_bytes=block_bytes):
            return upper
        low, high = 0, upper  # admits(low) or low == 0; not admits(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.admits(available_bytes, middle, block_bytes=block_bytes):
                low = middle
            else:
                high = middle
        return low

    def refusing_stage(self, available_bytes: int) -> int | None:
        """Bytes per block of the first stage that refuses max_model_len: vLLM names its figures."""
        length = self.settings.max_model_len
        stages = self.stage_block_bytes
        return next(
            (b for b in stages if not self.admits(available_bytes, length, block_bytes=b)), None
        )

    def capacity(self, available_bytes: int, *, longest_asked: int | None = None) -> Capacity:
        """Everything vLLM prints about ``available_bytes`` of KV cache per rank."""
        settings = self.settings
        if not self.groups:
            return _nothing_cached(available_bytes, self.block_size, settings.max_model_len)
        available = max(available_bytes, 0)
        num_blocks = min(available // b for b in self.stage_block_bytes)
        per_request = self.request_blocks()
        tokens, concurrency = tokens_line(num_blocks, per_request, settings.max_model_len)
        upper = max(settings.max_model_len, longest_asked or 0)
        refusing = self.refusing_stage(available_bytes)
        if refusing is not None:
            upper = settings.max_model_len
        return Capacity(
            available_bytes=available_bytes,
            max_model_len=settings.max_model_len,
            num_gpu_blocks=num_blocks,
            block_size=self.block_size,
            bytes_per_block=self.block_bytes,
            blocks_per_request=per_request,
            tokens=tokens,
            max_concurrency=concurrency,
            bytes_per_token=bytes_per_token(self.groups, settings.decode_context_parallel_size),
            request_bytes=(refusing or self.block_bytes) * per_request,
            fits=refusing is None,
            estimated_max_model_len=self.longest(available_bytes, upper, block_bytes=refusing),
            groups=tuple(
                KVCacheGroup(
                    kind=g.page.kind.value,
                    num_layers=len(g.members),
                    block_size=g.page.block_size,
                    page_size_bytes=g.page_bytes if g.is_uniform else g.page.page_bytes,
                    blocks_per_request=g.blocks(settings),
                    window=g.page.window,
                )
                for g in self.groups
            ),
        )
