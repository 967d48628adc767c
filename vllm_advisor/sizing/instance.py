"""One instance: budget of the fullest rank and capacity of its KV cache, from settings."""

from __future__ import annotations

from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.sizing.budget import memory_budget
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.kv_cache import KVCacheSettings, without_window
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.sizing.refusal import refusal
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts, dtype_bytes
from vllm_advisor.types.sizing import InstanceFigures

_MIXED_BATCH_HEADS = 32
_PADDED_HEADS = 64


def cache_layout(model: ModelFacts, settings: InstanceSettings) -> CacheLayout:
    """The KV cache groups of a model under these settings.

    Raises:
        InfeasibleError: vLLM refuses the settings for this model.
        NotModelledError: the cache layout is not known.
    """
    cache_dtype = settings.kv_cache_dtype
    declared = model.quantization.kv_cache_dtype if model.quantization else None
    if cache_dtype == "auto" and declared:
        cache_dtype = declared  # vllm/utils/torch_utils.py: auto takes what the checkpoint declares
    _check_context_parallel(model, settings)
    layers = model.kv_cache
    if not settings.sliding_window:
        layers = tuple(tuple(without_window(spec) for spec in of) for of in layers)
    return CacheLayout(
        layers,
        KVCacheSettings(
            cache_dtype=cache_dtype,
            model_dtype_bytes=dtype_bytes(settings.dtype or model.dtype),
            block_size=settings.block_size,
            max_model_len=settings.max_model_len,
            in_flight_tokens=settings.in_flight_tokens,
            # vllm/config/scheduler.py#SchedulerConfig.max_num_encoder_input_tokens
            encoder_tokens=settings.max_num_batched_tokens,
            tensor_parallel_size=settings.tensor_parallel_size,
            pipeline_parallel_size=settings.pipeline_parallel_size,
            decode_context_parallel_size=settings.decode_context_parallel_size,
            hybrid_manager=settings.hybrid_manager,
            prefix_caching=settings.prefix_caching,
            capability=settings.capability,
            gdn_prefill_checkpoint=settings.gdn_prefill_checkpoint,
            sparse_format=settings.sparse_format,
            block_outermost=model.block_outermost,
        ),
    )


def _check_context_parallel(model: ModelFacts, settings: InstanceSettings) -> None:
    dcp = settings.decode_context_parallel_size
    if dcp == 1:
        return
    if any(s.sparse for s in model.cache_specs):
        # vllm/v1/attention/backends/mla/flashmla_sparse.py
        local = model.num_attention_heads // settings.tensor_parallel_size
        why, fix = "", "--decode-context-parallel-size 1"
        if settings.sparse_format is None:
            why = "requires an fp8_ds_mla KV cache; the 16-bit sparse path is not supported"
            fix = "--kv-cache-dtype fp8 on Hopper"
        elif local >= _MIXED_BATCH_HEADS:
            why = f"runs with fewer than {_MIXED_BATCH_HEADS} heads per rank only, here {local}"
        elif local * dcp > _PADDED_HEADS:
            why = f"would gather {local * dcp} heads, more than the {_PADDED_HEADS} it pads to"
        if why:
            raise InfeasibleError(
                f"DCP for FlashMLA sparse {why}", where="--decode-context-parallel-size", fix=fix
            )
    if model.block_outermost or any(s.state is not None for s in model.cache_specs):
        raise NotModelledError(
            f"decode context parallelism of {model.architecture} is not modelled",
            where="--decode-context-parallel-size",
            fix="--decode-context-parallel-size 1",
        )


def size_instance(
    model: ModelFacts,
    settings: InstanceSettings,
    *,
    accelerator: Accelerator | None,
    overheads: Overheads,
    layout: CacheLayout | None = None,
) -> InstanceFigures:
    """Budget and capacity of one instance.

    Args:
        model: the model.
        settings: resolved engine arguments.
        accelerator: the GPU; may be ``None`` when ``kv_cache_memory_bytes`` is set.
        overheads: constants of the vLLM version.
        layout: a layout built before for the same settings.

    Raises:
        InfeasibleError: vLLM refuses the parallel sizes.
        InputError: neither a GPU nor ``kv_cache_memory_bytes`` is given.
    """
    check_parallelism(
        model,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        decode_context_parallel_size=settings.decode_context_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
    )
    if settings.dtype is not None and dtype_bytes(settings.dtype) != model.dtype_bytes:
        raise NotModelledError(
            f"weights and activations of {model.model_id} in {settings.dtype} are not modelled",
            where="--dtype",
            fix="--dtype auto on a GPU of compute capability 8.0 or more",
        )
    layout = layout or cache_layout(model, settings)
    derived = settings.max_position_embeddings or derived_max_model_len(model)
    budget, notes = None, model.assumptions
    available = settings.kv_cache_memory_bytes
    if accelerator is not None:
        budget, budget_notes = memory_budget(model, settings, accelerator, overheads)
        notes += budget_notes
        available = int(budget.kv_cache.value)
    if settings.num_gpu_blocks_override is not None:
        available = settings.num_gpu_blocks_override * layout.block_bytes
    if available is None:
        raise InputError(
            "the memory of the GPU is not known",
            where="--gpu",
            fix="name a GPU (--gpu h100-sxm) or give --kv-cache-memory-bytes",
        )
    capacity = layout.capacity(available, longest_asked=derived)
    blocks = capacity.blocks_per_request + 1
    if layout.recurrent and not settings.enforce_eager:
        blocks = max(blocks, settings.max_num_seqs)  # one state each
    needed = blocks * capacity.bytes_per_block
    if not capacity.groups and budget is not None:
        available = int(budget.total.value) - int(budget.requested.value)  # all that is left
    return InstanceFigures(
        budget=budget,
        capacity=capacity,
        derived_max_model_len=derived,
        attention_backend=settings.attention_backend,
        refusal=refusal(capacity, settings, recurrent=layout.recurrent),
        spare_bytes=None if budget is None else available - needed,
        may_miss_bytes=overheads.error_bytes,
        assumptions=notes,
    )


def shared_prefix_blocks(layout: CacheLayout, tokens: int) -> int:
    """Blocks of a shared prefix that prefix caching holds once for all requests.

    Only whole blocks are shared (vllm/v1/core/block_pool.py), and only where every block stays:
    windowed layers are counted in full for each request.
    """
    return sum(
        tokens // g.page.block_size
        for g in layout.groups
        if g.page.window is None and g.page.kind is not KVCacheSpecKind.MAMBA
    )
