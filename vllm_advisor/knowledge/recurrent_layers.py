"""From config.json to the state of recurrent layers, by kind.

Shapes: vllm/model_executor/layers/mamba/mamba_utils.py#MambaStateShapeCalculator and each model's
get_mamba_state_shape_from_config; dtypes: #MambaStateDtypeCalculator.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Layers
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    RecurrentState,
    StateKind,
)

_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def recurrent_state(name: str, layout: Layers, config: dict[str, Any]) -> KVCacheSpec:
    """What one recurrent layer of this model keeps.

    Raises:
        NotModelledError: a key its state needs is missing.
    """
    builders = {
        StateKind.MAMBA1: _mamba1,
        StateKind.MAMBA2: _mamba2,
        StateKind.GATED_DELTA_NET: _gated_delta_net,
        StateKind.KDA: _kda,
        StateKind.SHORT_CONV: _short_conv,
        StateKind.LINEAR_ATTENTION: _linear_attention,
    }
    kind = layout.recurrent_kind
    if kind is None:
        raise NotModelledError(f"{name}: its recurrent layers are not described")
    try:
        state = builders[kind](layout, config)
    except (KeyError, TypeError) as error:
        raise NotModelledError(
            f"{name}: config.json has no {error}, which its {kind} layers need",
            fix="check the config.json",
        ) from None
    return KVCacheSpec(
        kind=KVCacheSpecKind.MAMBA, num_kv_heads=0, head_size=0, head_size_v=0, state=state
    )


def _first(config: dict[str, Any], *keys: str) -> int:
    for key in keys:
        if config.get(key) is not None:
            return int(config[key])
    raise KeyError(keys[0])


def _state_bytes(layout: Layers, config: dict[str, Any]) -> int | None:
    """Bytes of the recurrence where the config or the architecture asks for a dtype."""
    named = config.get("mamba_ssm_cache_dtype") or config.get("mamba_ssm_dtype")
    return _BYTES.get(str(named or layout.recurrent_dtype))


def _mamba1(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    inner = config.get("intermediate_size") if layout.kinds == "recurrent" else None
    channels = int(inner or _first(config, "mamba_expand", "expand") * config["hidden_size"])
    return RecurrentState(
        kind=StateKind.MAMBA1,
        conv_rows=_first(config, "mamba_d_conv", "conv_kernel") - 1,
        conv_channels=channels,
        elements=channels * _first(config, "mamba_d_state", "state_size"),
        element_bytes=_state_bytes(layout, config),
    )


def _mamba2(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    heads = _first(config, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    inner = int(config.get("mamba_d_ssm") or 0)
    sizes = [config.get(k) for k in ("mamba_head_dim", "mamba_d_head", "mamba_headdim")]
    named = next((s for s in sizes if s and s != "auto"), None)
    if named is None and layout.kinds == "recurrent":
        named = config["head_dim"]
    if named is None:
        inner = inner or _first(config, "mamba_expand", "expand") * int(config["hidden_size"])
        named = inner // heads
    size = int(named)
    inner = inner or heads * size
    state = _first(config, "ssm_state_size", "mamba_d_state", "state_size")
    return RecurrentState(
        kind=StateKind.MAMBA2,
        conv_rows=_first(config, "conv_kernel", "mamba_d_conv") - 1,
        conv_channels=inner,
        num_groups=_first(config, "n_groups", "mamba_n_groups", "mamba_ngroups"),
        group_size=state,
        elements=heads * size * state,
        element_bytes=_state_bytes(layout, config),
    )


def _gated_delta_net(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    key_dim, value_dim = int(config["linear_key_head_dim"]), int(config["linear_value_head_dim"])
    keys, values = int(config["linear_num_key_heads"]), int(config["linear_num_value_heads"])
    return RecurrentState(
        kind=StateKind.GATED_DELTA_NET,
        conv_rows=int(config["linear_conv_kernel_dim"]) - 1,
        conv_channels=2 * keys * key_dim + values * value_dim,
        elements=values * value_dim * key_dim,
        element_bytes=_state_bytes(layout, config),
        key_head_dim=key_dim,
    )


def _kda(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    linear = config.get("linear_attn_config") or {}
    heads = int(linear.get("num_heads") or config["linear_num_heads"])
    size = int(linear.get("head_dim") or config["linear_head_dim"])
    kernel = int(linear.get("short_conv_kernel_size") or config["linear_conv_kernel_dim"])
    named = config.get("mamba_ssm_cache_dtype") or layout.recurrent_dtype or "float32"
    return RecurrentState(
        kind=StateKind.KDA,
        conv_rows=kernel - 1,
        conv_channels=3 * heads * size,
        elements=heads * size * size,
        element_bytes=_BYTES.get(str(named), 4),
        key_head_dim=size,
    )


def _short_conv(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    del layout
    return RecurrentState(
        kind=StateKind.SHORT_CONV,
        conv_rows=int(config["conv_L_cache"]) - 1,
        conv_channels=_first(config, "conv_dim", "hidden_size"),
    )


def _linear_attention(layout: Layers, config: dict[str, Any]) -> RecurrentState:
    del layout
    heads = int(config["num_attention_heads"])
    size = int(config.get("head_dim") or config["hidden_size"] // heads)
    return RecurrentState(kind=StateKind.LINEAR_ATTENTION, elements=heads * size * size)
