"""Zamba2: a few transformer blocks that many layers share (vllm/model_executor/models/zamba2.py).

The blocks take the hidden state beside the embedding, so their attention is wider than the model.
vLLM has no pipeline parallelism for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.weight_parts import Layers, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind


def shared_blocks(config: dict[str, Any], layers: Layers) -> list[WeightComponent]:
    """The blocks once, and what each of the layers that call them keeps for itself.

    Args:
        config: config.json, defaults filled in.
        layers: the hybrid layers.

    Raises:
        KeyError: a key the blocks need is missing.
    """
    hidden, wide = int(config["hidden_size"]), int(config["attention_hidden_size"])
    intermediate, rank = int(config["intermediate_size"]), int(config["adapter_rank"])
    blocks = int(config["num_mem_blocks"])

    def shared(name: str, kind: WeightKind, split: int, other: int, times: int) -> WeightComponent:
        return matrix(name, kind, split, other, count=blocks * times, stages="every")

    parts = [
        shared("shared_qkv_proj", WeightKind.ATTENTION, wide, wide, 3),
        shared("shared_o_proj", WeightKind.ATTENTION, wide, hidden, 1),
        shared("shared_mlp", WeightKind.MLP, intermediate, hidden, 3),
        # The norm before attention is over both halves of its input.
        plain("shared_norms", blocks * (2 + 1) * hidden, stages="every"),
        matrix("linear", WeightKind.OTHER, hidden, hidden, layers=layers, shard=Shard.REPLICATED),
        _adapter("mlp_adapter", (hidden, rank), (rank, 2 * intermediate), layers),
    ]
    if config["add_bias_linear"]:
        up = plain("shared_mlp_up_bias", blocks * 2 * intermediate, stages="every")
        parts.append(replace(up, shard=Shard.SPLIT))
        parts.append(plain("shared_mlp_down_bias", blocks * hidden, stages="every"))
    if config["use_shared_attention_adapter"]:
        adapter = _adapter("attention_adapters", (wide, rank), (rank, wide), layers)
        parts.append(replace(adapter, params=3 * adapter.params, split_size=3 * adapter.split_size))
    return parts


def _adapter(
    name: str, down: tuple[int, int], up: tuple[int, int], layers: Layers
) -> WeightComponent:
    """Both matrices of a low-rank adapter; TP cuts the rank of one and the output of the other."""
    params = down[0] * down[1] + up[0] * up[1]
    return matrix(name, WeightKind.OTHER, params, 1, layers=layers)
