"""Weights that vLLM keeps in CPU memory: which parameters of a stage leave the GPU.

Sources: vllm/model_executor/offloader/uva.py and prefetch.py; the order of a layer's parameters is
that of its module (vllm/model_executor/models/llama.py#LlamaDecoderLayer and its kin).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.model import ModelFacts, WeightComponent

# Architectures whose layers were held against vLLM's own, parameter by parameter.
_ORDERED = (
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "Phi3ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
)
_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
Parameter = tuple[str, int]  # its name within the layer, and bytes on one rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """``limit_bytes`` of parameters (UVA), or the last layers of each group (prefetch).

    ``names`` are the segments of parameter names that may leave; empty means all.
    """

    limit_bytes: int = 0
    group_size: int = 0
    num_in_group: int = 1
    prefetch_step: int = 1
    names: frozenset[str] = frozenset()

    def takes(self, name: str) -> bool:
        """Whether a parameter may leave: a whole segment of its name is asked for."""
        return not self.names or any(f".{one}." in f".{name}." for one in self.names)


def check_offload(
    model: ModelFacts, argument: str, *, quantized: bool, language_model_only: bool
) -> None:
    """Refuse models whose parameters are not known one by one.

    Raises:
        NotModelledError: names what is not known.
    """
    why = ""
    if quantized:
        why = "of quantized weights"
    elif model.multimodal and not language_model_only:
        why = "beside encoders"
    elif model.architecture not in _ORDERED:
        why = f"of {model.architecture}"
    if why:
        raise NotModelledError(
            f"{argument} {why} is not modelled: which weights leave the GPU",
            where="--" + argument.replace("_", "-"),
            fix="leave weights on the GPU",
        )


def saved_bytes(
    model: ModelFacts,
    offload: Offload,
    layers: range,
    rank_bytes: Callable[[WeightComponent], int],
) -> int:
    """Bytes that one rank's GPU does not hold of these layers, less what is allocated for them.

    UVA takes whole parameters in order until the limit is reached or passed. Prefetching moves
    layers and keeps ``prefetch_step`` buffers for each shape of parameter.

    Args:
        model: the model.
        offload: what was asked for.
        layers: of the pipeline stage.
        rank_bytes: bytes of one layer's part on one rank.
    """
    in_order = [list(_parameters(model, index, rank_bytes)) for index in layers]
    if offload.group_size:
        first = offload.group_size - offload.num_in_group
        moved = [
            parameter
            for position, layer in enumerate(in_order)
            if position % offload.group_size >= first
            for parameter in layer
            if offload.takes(parameter[0])
        ]
        buffers = sum(size for _, size in set(moved)) * offload.prefetch_step
        return sum(size for _, size in moved) - buffers
    saved = 0
    for layer in in_order:
        for name, size in layer:
            if saved >= offload.limit_bytes:
                return saved
            if offload.takes(name):
                saved += size
    return saved


def _parameters(
    model: ModelFacts, index: int, rank_bytes: Callable[[WeightComponent], int]
) -> Iterator[Parameter]:
    """One layer's parameters in the order of its modules."""
    parts = {part.name: part for part in model.weights.components if index in part.layers}

    def size(*names: str) -> int:
        return sum(rank_bytes(parts[name]) for name in names if name in parts)

    yield "self_attn.qkv_proj.weight", size("q_proj", "kv_proj")
    if "q_bias" in parts:
        yield "self_attn.qkv_proj.bias", size("q_bias", "kv_bias")
    yield "self_attn.o_proj.weight", size("o_proj")
    if "o_bias" in parts:
        yield "self_attn.o_proj.bias", size("o_bias")
    for name in ("q_norm", "k_norm") if "qk_norm" in parts else ():
        yield f"self_attn.{name}.weight", size("qk_norm") // 2
    if "mlp" in parts:
        block = parts["mlp"].modules[0].rpartition(".")[0]
        third = size("mlp") // 3
        yield f"{block}.gate_up_proj.weight", 2 * third
        if "mlp_up_bias" in parts:
            yield f"{block}.gate_up_proj.bias", size("mlp_up_bias")
        yield f"{block}.down_proj.weight", third
        if "mlp_down_bias" in parts:
            yield f"{block}.down_proj.bias", size("mlp_down_bias")
    if "experts" in parts:
        block = parts["experts"].modules[0].rpartition(".")[0]
        third = size("experts") // 3
        yield f"{block}.gate.weight", size("router")
        yield f"{block}.experts.routed_experts.w13_weight", 2 * third
        yield f"{block}.experts.routed_experts.w2_weight", third
    norms = size("norms")
    count = norms // (model.hidden_size * model.dtype_bytes)
    for name in _NORMS[:count]:
        yield f"{name}.weight", norms // count
