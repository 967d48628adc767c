"""What vLLM refuses about context parallelism, over the ranks of TP (DCP) and beside them (PCP)."""

from __future__ import annotations

from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.model import ModelFacts

_MIXED_BATCH_HEADS = 32
_PADDED_HEADS = 64
# vllm/v1/attention/backend.py#supports_dcp
_WITHOUT_DCP = ("TRITON_ATTN", "TURBOQUANT", "TRITON_FLASH_ATTN", "TRITON_FLASHINFER")
_DCP = "--decode-context-parallel-size"
_PCP = "--prefill-context-parallel-size"
# Sparse attention whose graphs run under prefill context parallelism.
_SPARSE_GRAPHS = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")


def check_context_parallel(model: ModelFacts, settings: InstanceSettings) -> None:
    """Raise what vLLM raises for this model and these settings.

    Raises:
        InfeasibleError: vLLM refuses the combination.
        NotModelledError: what it does is not known.
    """
    if settings.prefill_context_parallel_size > 1:
        _check_prefill(model, settings)
    if settings.decode_context_parallel_size > 1:
        _check_decode(model, settings)


def check_interleave(layout: CacheLayout, settings: InstanceSettings) -> None:
    """Raise what vLLM raises for the tokens that one rank stores before the next does.

    Sources: vllm/config/vllm.py#validate_block_size,
    vllm/v1/attention/backends/mla/flashinfer_mla.py.

    Raises:
        InfeasibleError: vLLM refuses the size.
    """
    size, where = settings.cp_kv_cache_interleave_size, "--cp-kv-cache-interleave-size"
    if settings.decode_context_parallel_size == 1:
        return
    if layout.block_size % size:
        raise InfeasibleError(
            f"Block_size({layout.block_size}) should be greater than or equal to and divisible by "
            f"cp_kv_cache_interleave_size ({size}).",
            where=where,
            fix=f"a divisor of {layout.block_size}",
        )
    if size > 1 and settings.attention_backend == "FLASHINFER_MLA":
        raise InfeasibleError(
            f"FlashInfer MLA native DCP requires cp_kv_cache_interleave_size=1; got {size}.",
            where=where,
            fix="leave it out",
        )


def _check_prefill(model: ModelFacts, settings: InstanceSettings) -> None:
    """vllm/v1/worker/gpu/pcp_manager.py#validate_config and each backend's supports_pcp."""
    sparse = model.block_outermost or any(spec.sparse for spec in model.cache_specs)
    why, fix = "", f"{_PCP} 1"
    if not (model.uses_mla or model.block_outermost):
        why = "supports MLA models only"
    elif any(spec.state is not None for spec in model.cache_specs):
        why = "is not supported by the backends of recurrent layers"
    elif model.multimodal and not settings.language_model_only:
        why, fix = "does not support multimodal inputs", "--language-model-only"
    elif settings.max_loras:
        why, fix = "does not support LoRA", "leave --enable-lora out"
    elif settings.decode_context_parallel_size > 1 and not sparse:
        why, fix = "beside DCP supports sparse MLA models only", f"{_DCP} 1"
    elif sparse and settings.decode_context_parallel_size == 1 and not settings.enforce_eager:
        known = settings.sparse_pcp_graphs and model.architecture in _SPARSE_GRAPHS
        if not known:
            why, fix = "of this sparse MLA does not support CUDA graphs", "--enforce-eager"
    if why:
        raise InfeasibleError(
            f"prefill context parallelism {why} ({model.architecture})", where=_PCP, fix=fix
        )
    if settings.decode_context_parallel_size > 1:
        raise NotModelledError(
            f"prefill and decode context parallelism together are not modelled for "
            f"{model.architecture}",
            where=_PCP,
            fix=f"{_DCP} 1 or {_PCP} 1",
        )


def _check_decode(model: ModelFacts, settings: InstanceSettings) -> None:
    dcp = settings.decode_context_parallel_size
    if any(s.sparse for s in model.cache_specs):
        # vllm/v1/attention/backends/mla/flashmla_sparse.py
        local = model.num_attention_heads // settings.tensor_parallel_size
        why, fix = "", f"{_DCP} 1"
        if settings.sparse_format is None:
            why = "requires an fp8_ds_mla KV cache; the 16-bit sparse path is not supported"
            fix = "--kv-cache-dtype fp8 on Hopper"
        elif local >= _MIXED_BATCH_HEADS:
            why = f"runs with fewer than {_MIXED_BATCH_HEADS} heads per rank only, here {local}"
        elif local * dcp > _PADDED_HEADS:
            why = f"would gather {local * dcp} heads, more than the {_PADDED_HEADS} it pads to"
        if why:
            raise InfeasibleError(f"DCP for FlashMLA sparse {why}", where=_DCP, fix=fix)
    if settings.attention_backend in _WITHOUT_DCP:
        raise InfeasibleError(
            f"No valid attention backend found: {settings.attention_backend} does not support DCP",
            where=_DCP,
            fix=f"{_DCP} 1",
        )
    if model.block_outermost or any(s.state is not None for s in model.cache_specs):
        raise NotModelledError(
            f"decode context parallelism of {model.architecture} is not modelled",
            where=_DCP,
            fix=f"{_DCP} 1",
        )
