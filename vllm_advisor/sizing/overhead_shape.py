"""What of a model decides the memory beside weights and cache."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts, WeightKind

# vllm/model_executor/models/config.py#GptOssForCausalLMConfig
_CAPTURE_LIMITS = {"GptOssForCausalLM": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadShape:
    """What of a model decides this memory; ``intermediate_size`` is 0 if all MLPs are experts."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    dtype_bytes: int = 2
    eight_bit_activations: bool = False
    multimodal: bool = False
    latent_attention: bool = False
    sparse_attention: bool = False
    max_capture_size: int | None = None  # where vLLM sets it for the architecture


def shape_of(model: ModelFacts, *, multimodal: bool, online_fp8: bool = False) -> OverheadShape:
    """The shape of a model; ``multimodal`` says that its encoders are loaded and profiled."""
    quantization = model.quantization
    experts = [c for c in model.weights.components if c.kind is WeightKind.EXPERTS]
    expert_layers = {layer for c in experts for layer in c.layers}
    all_experts = bool(model.num_experts) and len(expert_layers) == model.num_hidden_layers
    sparse = any(
        spec.sparse or spec.kind is KVCacheSpecKind.SLIDING_WINDOW_MLA for spec in model.cache_specs
    )
    return OverheadShape(
        vocab_size=model.vocab_size,
        hidden_size=model.hidden_size,
        intermediate_size=0 if all_experts else model.intermediate_size,
        num_hidden_layers=model.num_hidden_layers,
        num_experts=model.num_experts,
        num_experts_per_tok=model.num_experts_per_tok,
        moe_intermediate_size=model.moe_intermediate_size,
        dtype_bytes=model.dtype_bytes,
        eight_bit_activations=online_fp8 or (quantization is not None and quantization.bits == 8),
        multimodal=multimodal,
        latent_attention=model.uses_mla or sparse,
        sparse_attention=sparse,
        max_capture_size=_CAPTURE_LIMITS.get(model.architecture),
    )
