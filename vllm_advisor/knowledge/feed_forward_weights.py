"""Parameters of dense MLPs and experts, as vLLM fuses, pads and shards them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture, Moe
from vllm_advisor.knowledge.weight_parts import Layers, flag, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

_FP32 = 4
# 16-bit experts with these activations run in TRT-LLM's kernels on compute capability 10.x, which
# take shares that are a multiple (vllm/model_executor/layers/fused_moe/oracle/unquantized.py).
_TRTLLM_ACTIVATIONS = ("silu", "relu2")
_TRTLLM_MULTIPLE = 128


def dense_mlp(
    arch: Architecture, config: dict[str, Any], layers: Layers, intermediate: int
) -> list[WeightComponent]:
    """Gate, up and down of dense layers."""
    if not layers:
        return []
    hidden, inputs = int(config["hidden_size"]), 2 if arch.gated_mlp else 1
    block = "feed_forward" if arch.moe and arch.moe.block == "feed_forward" else "mlp"
    names = tuple(f"{block}.{n}_proj" for n in ("gate", "up", "down")[-inputs - 1 :])
    count = inputs + 1
    shard = Shard.REPLICATED if arch.whole_mlp else Shard.SPLIT
    parts = [
        matrix(
            "mlp",
            WeightKind.MLP,
            intermediate,
            hidden,
            layers=layers,
            count=count,
            shard=shard,
            modules=names,
        )
    ]
    if arch.down_bias:
        parts.append(plain("mlp_down_bias", hidden, layers))
    if flag(arch.mlp_bias, config):
        parts.append(plain("mlp_up_bias", inputs * intermediate, layers, shard=shard))
        parts.append(plain("mlp_down_bias", hidden, layers))
    return parts


def _activation(config: dict[str, Any]) -> str:
    keys = ("hidden_activation", "hidden_act", "mlp_hidden_act")
    return next((str(config[key]) for key in keys if config.get(key)), "silu")


def dense_intermediate(arch: Architecture, config: dict[str, Any]) -> int:
    """Intermediate size of the dense layers."""
    key = arch.moe.dense_intermediate if arch.moe else None
    return int(config.get(key or "intermediate_size") or config["intermediate_size"])


def experts(
    arch: Architecture, moe: Moe, config: dict[str, Any], layers: Layers
) -> list[WeightComponent]:
    """Routed experts with their router, and shared experts beside them."""
    if not layers:
        return []
    hidden, number = int(config["hidden_size"]), int(config[moe.experts])
    intermediate = int(config[moe.intermediate])
    matrices = 3 if arch.gated_mlp else 2
    routed = matrix(
        "experts",
        WeightKind.EXPERTS,
        intermediate,
        hidden,
        layers=layers,
        count=number * matrices,
        shard=Shard.EXPERTS,
        modules=(f"{moe.block}.experts",),
    )
    routed = replace(
        routed,
        experts=number,
        split_multiple=moe.rank_multiple,
        blackwell_multiple=_TRTLLM_MULTIPLE if _activation(config) in _TRTLLM_ACTIVATIONS else 1,
    )
    parts = [routed, plain("router", hidden * number, layers, dtype_bytes=moe.router_bytes)]
    if moe.router_bias:
        parts.append(plain("router_bias", number, layers))
    key = moe.correction_bias_key
    if moe.correction_bias and (key is None or config.get(key)):
        # FP32 whatever the model's dtype (vllm/model_executor/models/deepseek_v2.py).
        parts.append(plain("correction_bias", number, layers, dtype_bytes=_FP32))
    if moe.expert_scale:  # Gemma 4's router scales its input and each expert's output
        parts.append(plain("router_scale", hidden + number, layers))
    if moe.expert_bias:
        up, down = (matrices - 1) * number, number
        bias = replace(routed, name="expert_up_bias", kind=WeightKind.NORM, linear=False)
        parts.append(replace(bias, params=up * intermediate, matrices=up, modules=()))
        parts.append(
            replace(
                bias,
                name="expert_down_bias",
                params=down * hidden,
                matrices=down,
                split_size=1,
                shard=Shard.EXPERTS_WHOLE,
                modules=(),
            )
        )
    parts += _shared(moe, config, layers, matrices, intermediate)
    return parts


def _shared(
    moe: Moe, config: dict[str, Any], layers: Layers, matrices: int, routed: int
) -> list[WeightComponent]:
    hidden, shared = int(config["hidden_size"]), _shared_intermediate(moe, config, routed)
    parts = []
    if shared:
        names = tuple(
            f"{moe.block}.{moe.shared_module}.{n}_proj" for n in ("gate", "up", "down")[-matrices:]
        )
        parts.append(
            matrix(
                "shared_experts",
                WeightKind.MLP,
                shared,
                hidden,
                layers=layers,
                count=matrices,
                modules=names,
            )
        )
    if moe.shared_gate:
        parts.append(plain("shared_gate", hidden, layers))
    return parts


def _shared_intermediate(moe: Moe, config: dict[str, Any], routed: int) -> int:
    if moe.shared_intermediate and not moe.shared_count:
        return int(config.get(moe.shared_intermediate) or 0)
    number = int(config.get(moe.shared_count) or 0) if moe.shared_count else moe.shared_count_fixed
    return number * int(config.get(moe.shared_intermediate or "") or routed)


def sparse_layers(moe: Moe, config: dict[str, Any], count: int) -> Layers:
    """Layers that have experts.

    Raises:
        NotModelledError: the config does not say how many experts there are.
    """
    if not config.get(moe.experts):
        if moe.optional:
            return ()
        raise NotModelledError(
            f"config.json has no {moe.experts}, which this architecture's experts need",
            fix="check the config.json; a dense variant of this architecture is not known",
        )
    named = config.get("mlp_layer_types")
    if named:
        return tuple(i for i, kind in enumerate(named[:count]) if kind == "sparse")
    listed = config.get(moe.sparse_step) if moe.sparse_step else None
    if isinstance(listed, list):
        return tuple(i for i, on in enumerate(listed[:count]) if on)
    first = int(config.get(moe.dense_first) or 0) if moe.dense_first else 0
    step = int(listed or 1)
    dense = set(config.get(moe.dense_list) or ()) if moe.dense_list else set()
    # Qwen and Llama 4 count (i + 1) % step, DeepSeek i % step; with a step of 1 they agree, and
    # no published DeepSeek-type config has another.
    return tuple(i for i in range(first, count) if i not in dense and (i + 1) % step == 0)
