"""Layers that stay in the model's dtype while others quantize their cache.

TurboQuant leaves the outer layers of dense models so; ``--kv-cache-dtype-skip-layers`` names them.
Sources: vllm/model_executor/layers/attention/attention.py#get_kv_cache_spec,
vllm/platforms/interface.py#_align_heterogeneous_kv_block_size.
"""

from __future__ import annotations

from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.cache_dtype import FULL_PRECISION_EDGES, is_eight_bit, is_turboquant
from vllm_advisor.sizing.kv_cache import FULL, MAMBA, SLIDING, KVCacheSettings
from vllm_advisor.types.model import KVCacheSpec
from vllm_advisor.units import ceil_div

Layers = tuple[tuple[KVCacheSpec, ...], ...]
WINDOWS = "sliding_window"  # names every windowed layer
_KERNEL_BLOCK = 16  # smallest that FlashAttention, FlashInfer and Triton take


def stays_whole(index: int, spec: KVCacheSpec, layers: Layers, settings: KVCacheSettings) -> bool:
    """This layer keeps its cache in the model's dtype."""
    if is_turboquant(settings.cache_dtype):
        edge = min(FULL_PRECISION_EDGES, len(layers) // 2)
        return not _recurs(layers) and not edge <= index < len(layers) - edge
    skipped = settings.skip_layers
    return str(index) in skipped or (spec.kind is SLIDING and WINDOWS in skipped)


def _recurs(layers: Layers) -> bool:
    return any(spec.kind is MAMBA for of in layers for spec in of)


def primary_block_size(block_size: int, layers: Layers, settings: KVCacheSettings) -> int:
    """Tokens per block of quantized layers: it covers a kernel's smallest block in 16 bits.

    vLLM reckons TurboQuant's pages at a byte an element there.
    """
    turbo = is_turboquant(settings.cache_dtype) and len(layers) > 1 and not _recurs(layers)
    if not settings.skip_layers and not turbo:
        return block_size
    step = max(_KERNEL_BLOCK, block_size)
    return step * ceil_div(_KERNEL_BLOCK * settings.model_dtype_bytes, step)


def own_block_size(spec: KVCacheSpec, settings: KVCacheSettings, block_size: int) -> int:
    """Tokens per block of a layer that stays whole: windows fill the page of the quantized ones."""
    if settings.skip_layers and spec.kind is SLIDING:
        return block_size // settings.model_dtype_bytes
    return block_size


def check_skipped_layers(layers: Layers, settings: KVCacheSettings, *, declared: bool) -> None:
    """Refuse the mixes whose pages are not computed.

    Args:
        layers: what each layer keeps.
        settings: with the cache dtype as it was resolved.
        declared: the dtype is the checkpoint's, not asked for.

    Raises:
        NotModelledError: names what is not known.
    """
    kinds = {spec.kind for of in layers for spec in of}
    heads = {(s.num_kv_heads, s.head_size, s.head_size_v) for of in layers for s in of}
    whole = {s.kind for i, of in enumerate(layers) for s in of
             if stays_whole(i, s, layers, settings)}  # fmt: skip
    why = ""
    if declared or not is_eight_bit(settings.cache_dtype):
        why = f"with --kv-cache-dtype {'auto' if declared else settings.cache_dtype}"
    elif not kinds <= {FULL, SLIDING} or len(heads) > 1:
        why = "for layers of this kind"
    elif len(kinds) > 1 and (FULL in whole or not settings.hybrid_manager):
        why = "for full attention beside windows"
    if why:
        raise NotModelledError(
            f"--kv-cache-dtype-skip-layers is not modelled {why}",
            where="--kv-cache-dtype-skip-layers",
            fix="leave it out",
        )
