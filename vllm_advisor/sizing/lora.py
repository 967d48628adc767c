"""Buffers for LoRA adapters: vLLM allocates them for every slot before the KV cache."""

from __future__ import annotations

from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.units import ceil_div


def lora_bytes(
    model: ModelFacts, *, max_loras: int, max_lora_rank: int, tensor_parallel_size: int
) -> int:
    """Bytes per rank of the stacked A and B matrices of ``max_loras`` adapters.

    Per layer and rank r, A is r x input and B is output x r for q, k, v, o, gate, up and down.
    A of column-parallel and B of row-parallel layers are whole on every rank, the others divided.
    Source: vllm/lora/layers/column_parallel_linear.py#create_lora_weights,
    row_parallel_linear.py. Logits adapters are left out.

    Raises:
        NotModelledError: experts or latent attention, whose adapters are laid out otherwise.
    """
    if model.num_experts or model.uses_mla:
        raise NotModelledError(
            f"LoRA buffers of {model.architecture} (experts or latent attention) are not modelled",
            where="lora",
            fix="leave lora out of the workload and allow for the adapters by hand",
        )
    tp = tensor_parallel_size
    hidden, inter = model.hidden_size, model.intermediate_size
    query = model.num_attention_heads * model.head_dim
    key_value = 2 * model.num_key_value_heads * model.head_dim
    column = 3 * hidden + 2 * hidden + ceil_div(query + key_value + 2 * inter, tp)
    row = ceil_div(query + inter, tp) + 2 * hidden
    per_layer = max_lora_rank * (column + row) * model.dtype_bytes
    return max_loras * model.num_hidden_layers * per_layer
