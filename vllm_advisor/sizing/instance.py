"""One instance: budget of the fullest rank and capacity of its KV cache, from settings."""

from __future__ import annotations

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.sizing.budget import memory_budget
from vllm_advisor.sizing.cache_dtype import is_quantized
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.context_parallel import check_context_parallel, check_interleave
from vllm_advisor.sizing.drafting import check_draft
from vllm_advisor.sizing.kv_cache import KVCacheSettings, without_window
from vllm_advisor.sizing.parallelism import check_settings
from vllm_advisor.sizing.prefix_match import check_prefix_match_unit
from vllm_advisor.sizing.refusal import refusal
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.skipped_layers import check_skipped_layers
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import ModelFacts, dtype_bytes
from vllm_advisor.types.sizing import InstanceFigures


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
    check_context_parallel(model, settings)
    check_draft(settings)
    layers = model.kv_cache
    if not settings.sliding_window:
        layers = tuple(tuple(without_window(spec) for spec in of) for of in layers)
    cache = KVCacheSettings(
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
        skip_layers=settings.kv_cache_dtype_skip_layers
        if is_quantized(cache_dtype)
        else frozenset(),
        mamba_cache_dtype=settings.mamba_cache_dtype,
        mamba_ssm_cache_dtype=settings.mamba_ssm_cache_dtype,
        gdn_prefill_checkpoint=settings.gdn_prefill_checkpoint,
        sparse_format=settings.sparse_format,
        block_outermost=model.block_outermost,
        num_speculative_tokens=settings.num_speculative_tokens,
    )
    if cache.skip_layers:
        declared_only = settings.kv_cache_dtype == "auto" and declared is not None
        check_skipped_layers(layers, cache, declared=declared_only)
    speculation = settings.speculation
    draft = speculation.draft.kv_cache if speculation and speculation.draft else ()
    layout = CacheLayout(layers, cache, draft=draft)
    check_interleave(layout, settings)
    check_prefix_match_unit(
        layout,
        settings.prefix_match_unit,
        hashed=settings.prefix_caching or settings.kv_connector,
    )
    return layout


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
    check_settings(model, settings)
    if settings.dtype is not None and dtype_bytes(settings.dtype) != model.dtype_bytes:
        raise NotModelledError(
            f"weights and activations of {model.model_id} in {settings.dtype} are not modelled",
            where="--dtype",
            fix="--dtype auto on a GPU of compute capability 8.0 or more",
        )
    layout = layout or cache_layout(model, settings)
    derived = settings.max_position_embeddings or derived_max_model_len(model)
    budget, notes, missing = None, model.assumptions, overheads.error_bytes
    available = settings.kv_cache_memory_bytes
    if accelerator is not None:
        budget, budget_notes, missing = memory_budget(model, settings, accelerator, overheads)
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
        may_miss_bytes=missing,
        engines=settings.data_parallel_size,
        assumptions=notes,
    )
