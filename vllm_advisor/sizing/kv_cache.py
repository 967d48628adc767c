"""Pages of a layer's cache and the blocks a request takes, as vLLM 0.32/0.33 computes them.

Knows layers, not models: the caller says what each layer keeps. Sources are files of the vLLM
0.33.0 package, mostly vllm/v1/kv_cache_interface.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.cache_dtype import head_bytes, latent_bytes
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    RecurrentState,
    StateKind,
    dtype_bytes,
)
from vllm_advisor.units import ceil_div, round_up

FULL = KVCacheSpecKind.FULL_ATTENTION
SLIDING = KVCacheSpecKind.SLIDING_WINDOW
CHUNKED = KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION
MLA = KVCacheSpecKind.MLA_ATTENTION
SLIDING_MLA = KVCacheSpecKind.SLIDING_WINDOW_MLA
MAMBA = KVCacheSpecKind.MAMBA
CROSS = KVCacheSpecKind.CROSS_ATTENTION
WINDOWED = (SLIDING, SLIDING_MLA, CHUNKED)

_MLA_HYBRID_ALIGNMENT = 128  # vllm/platforms/interface.py#_align_hybrid_block_size
_GDN_CHUNK = 64  # FlashInfer's gated-delta-net prefill checkpoints on its chunks
_KDA_CHUNK = 16
_FLASH_KDA = (9, 10, 12)  # major compute capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCacheSettings:
    """What of the engine's arguments and the GPU changes the KV cache.

    ``block_size`` is what the backend (or ``--block-size``) asks for, before it is aligned with
    recurrent states. ``in_flight_tokens`` are the tokens scheduled but not yet settled: concurrent
    batches times ``max_num_batched_tokens``; windows keep them. ``encoder_tokens`` is the length of
    an encoder's states that cross attention keeps room for. ``capability`` is the compute
    capability x 10.
    """

    cache_dtype: str
    model_dtype_bytes: int
    block_size: int
    max_model_len: int
    in_flight_tokens: int
    encoder_tokens: int = 0
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    hybrid_manager: bool = True
    prefix_caching: bool = True
    capability: int = 90
    gdn_prefill_checkpoint: bool = True
    skip_layers: frozenset[str] = frozenset()  # --kv-cache-dtype-skip-layers
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    sparse_format: int | None = None  # bytes per token of a sparse backend's own FP8 format
    block_outermost: bool = False
    num_speculative_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPage:
    """One cache of one layer on one rank; equal pages share a block table.

    ``page_bytes`` is the size of one block. ``layout`` tells caches apart that have equal pages by
    chance (heads, head sizes, entry format). ``states`` is the blocks a request takes of a
    recurrent layer.
    """

    kind: KVCacheSpecKind
    window: int | None
    block_size: int
    page_bytes: int
    layout: tuple[int, ...] = ()
    states: int = 0
    alignment: int = 1


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


def state_bytes(state: RecurrentState, settings: KVCacheSettings) -> int:
    """Bytes of one recurrent state on one rank.

    A convolution keeps a row more for every drafted token. Source:
    vllm/model_executor/layers/mamba/mamba_utils.py#MambaStateShapeCalculator and
    #MambaStateDtypeCalculator.

    Raises:
        InfeasibleError: the state is not kept in the dtype asked for.
    """
    tp = settings.tensor_parallel_size
    conv_bytes, element_bytes = state.conv_bytes, state.element_bytes
    if settings.mamba_cache_dtype != "auto":
        conv_bytes = dtype_bytes(settings.mamba_cache_dtype)
    asked = settings.mamba_ssm_cache_dtype
    if asked == "float16" and state.kind is StateKind.KDA:
        raise InfeasibleError(
            "KDA recurrent state supports only auto, float32, and bfloat16; got float16",
            where="--mamba-ssm-cache-dtype",
            fix="leave it out",
        )
    if asked != "auto" and state.kind is not StateKind.LINEAR_ATTENTION:
        element_bytes = dtype_bytes(asked)
    groups = state.num_groups if state.num_groups % tp == 0 else tp
    channels = ceil_div(state.conv_channels + 2 * groups * state.group_size, tp)
    rows = state.conv_rows
    if state.kind is not StateKind.MAMBA1:
        rows += settings.num_speculative_tokens
    conv = rows * channels * conv_bytes
    return conv + ceil_div(state.elements, tp) * (element_bytes or conv_bytes)


def checkpoints(state: RecurrentState, settings: KVCacheSettings) -> tuple[int, int]:
    """Extra blocks a prefix-cached state keeps for its checkpoint, and their alignment in tokens.

    Mamba2 keeps one, KDA where FlashKDA runs; a gated delta net where FlashInfer's prefill kernel
    is taken (compute capability 9.0 and 10.x, key heads of 128; vLLM 0.33 and later). Sources:
    under vllm/model_executor/layers/mamba: mamba_mixer2.py and
    gdn/*.py#num_prefill_checkpoint_blocks.
    """
    if state.kind is StateKind.MAMBA2:
        return 1, 1
    if state.kind is StateKind.KDA:
        # FlashKDA's kernel (vllm/models/kimi_k3/nvidia/kda.py#resolve_kda_prefill_backend)
        return (1, _KDA_CHUNK) if settings.capability // 10 in _FLASH_KDA else (0, 1)
    capability = settings.capability
    flashinfer = settings.gdn_prefill_checkpoint and (capability == 90 or 100 <= capability < 110)
    if state.kind is StateKind.GATED_DELTA_NET and flashinfer and state.key_head_dim == 128:
        return 1, _GDN_CHUNK
    return 0, 1


def token_bytes(spec: KVCacheSpec, settings: KVCacheSettings) -> int:
    """Bytes of one cached entry of a layer on one rank."""
    if spec.content_bytes is not None:
        return spec.content_bytes
    if spec.kind in (MLA, SLIDING_MLA):
        return latent_bytes(
            settings.cache_dtype,
            spec.head_size,
            settings.model_dtype_bytes,
            sparse_format=settings.sparse_format if spec.sparse else None,
        )
    heads = kv_heads_per_rank(spec.num_kv_heads, settings.tensor_parallel_size)
    one = head_bytes(
        settings.cache_dtype, spec.head_size, spec.head_size_v, settings.model_dtype_bytes
    )
    return heads * one


def aligned_block_size(specs: tuple[KVCacheSpec, ...], settings: KVCacheSettings) -> int:
    """Attention block size once recurrent states are taken into account.

    The block grows until an attention page is as large as a state, in steps of the backend's block
    (128 for MLA) and of the prefill checkpoints when states are prefix-cached. Source:
    vllm/platforms/interface.py#_align_hybrid_block_size.
    """
    states = [s.state for s in specs if s.state is not None]
    attention = [s for s in specs if s.kind is not MAMBA]
    if not states or not attention:
        return settings.block_size
    state_page = max(state_bytes(s, settings) for s in states)
    one = token_bytes(attention[0], settings)
    step = settings.block_size
    if attention[0].kind is MLA:
        step = max(step, _MLA_HYBRID_ALIGNMENT)
    if settings.prefix_caching:
        step = math.lcm(step, *(checkpoints(s, settings)[1] for s in states))
    return max(settings.block_size, step * ceil_div(state_page, step * one))


def layer_page(spec: KVCacheSpec, settings: KVCacheSettings, block_size: int) -> LayerPage:
    """The page of one layer: entries of a block x bytes of an entry.

    Args:
        spec: what the layer keeps.
        settings: engine and GPU.
        block_size: the aligned attention block size.
    """
    if spec.state is not None:
        page = state_bytes(spec.state, settings)
        if page < 1:
            raise InfeasibleError("a recurrent state of no bytes", where="config.json")
        cached, drafted = settings.prefix_caching, settings.num_speculative_tokens
        extra = checkpoints(spec.state, settings)[0]
        return LayerPage(
            kind=MAMBA,
            window=None,
            block_size=block_size if cached else settings.max_model_len,
            page_bytes=page,
            states=drafted + (2 + extra if cached else 1),
            layout=(page,),
        )
    block = spec.block_size or block_size
    entry = token_bytes(spec, settings)
    content = block // spec.tokens_per_entry * entry
    if not content:
        raise InfeasibleError(
            f"block_size {block} is below the {spec.tokens_per_entry} tokens that this model keeps "
            "in one entry",
            where="--block-size",
            fix="leave --block-size out",
        )
    return LayerPage(
        kind=spec.kind,
        window=spec.window,
        block_size=block,
        page_bytes=round_up(content, spec.alignment),
        layout=(spec.num_kv_heads, spec.head_size, spec.head_size_v, spec.tokens_per_entry, entry),
        alignment=spec.alignment,
    )


def without_window(spec: KVCacheSpec) -> KVCacheSpec:
    """A windowed layer as full attention (``--disable-sliding-window``)."""
    return replace(spec, kind=FULL, window=None) if spec.kind is SLIDING else spec


def promoted(page: LayerPage) -> LayerPage:
    """A windowed page as full attention, as ``--disable-hybrid-kv-cache-manager`` takes it."""
    if page.kind is SLIDING_MLA:
        return replace(page, kind=MLA, window=None)
    if page.kind in WINDOWED:
        return replace(page, kind=FULL, window=None)
    return page


def page_blocks(page: LayerPage, settings: KVCacheSettings, length: int | None = None) -> int:
    """Blocks one request of ``length`` tokens (default max_model_len) takes of a layer.

    Full and MLA: ceil(ceil(L / dcp) / block). Sliding: ceil(min(W - 1 + in flight, L) / block) + 1,
    the extra block because a window may start inside one. Chunked: ceil(min(chunk + in flight, L)
    / block). Recurrent: a fixed number of states. Cross: ceil(encoder tokens / block), whatever the
    request's length. Source:
    vllm/v1/kv_cache_interface.py#max_memory_usage_bytes of each spec.
    """
    tokens = settings.max_model_len if length is None else length
    if page.kind is MAMBA:
        return page.states
    if page.kind is CROSS:
        return ceil_div(settings.encoder_tokens, page.block_size)
    if page.kind in (SLIDING, SLIDING_MLA):
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
