"""Weights of recurrent mixers, counted as vLLM's layers allocate them.

Sources: vllm/model_executor/layers/mamba/mamba_mixer.py, mamba_mixer2.py, short_conv.py,
gdn/*_linear_attn.py and linear/minimax_linear_attn.py; vllm/models/kimi_k3/nvidia/kda.py.
Convolutions are never quantized; Mamba1 gives none of its matrices to a quantization method.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Mixer
from vllm_advisor.knowledge.layer_kinds import RECURRENT, Kinds
from vllm_advisor.knowledge.weight_parts import flag, matrix, plain
from vllm_advisor.types.model import Shard, StateKind, WeightComponent, WeightKind
from vllm_advisor.units import ceil_div

_FP32 = 4
_KDA_ROW_MULTIPLE = 16  # a rank's rows of KDA's fused input projection are padded to this


def recurrent_components(
    kind: StateKind, mixer: Mixer, config: dict[str, Any], kinds: Kinds
) -> list[WeightComponent]:
    """Weights of the recurrent mixers alone: no layer norms, no MLP.

    Args:
        kind: what recurs.
        mixer: biases, norms, dtypes and module names of the architecture's mixers.
        config: the text model's part of config.json, defaults filled in.
        kinds: what each layer has.

    Raises:
        NotModelledError: a key that the mixer needs is missing.
    """
    builders = {
        StateKind.MAMBA1: _mamba1,
        StateKind.MAMBA2: _mamba2,
        StateKind.GATED_DELTA_NET: _gated_delta_net,
        StateKind.KDA: _kda,
        StateKind.SHORT_CONV: _short_conv,
        StateKind.LINEAR_ATTENTION: _linear_attention,
    }
    layers = tuple(i for i, of in enumerate(kinds) if RECURRENT in of)
    if not layers:
        return []
    parts = _Parts(layers=layers, module=mixer.module)
    try:
        builders[kind](parts, mixer, config)
    except (KeyError, TypeError) as error:
        raise NotModelledError(
            f"config.json has no {error}, which the weights of {kind} layers need",
            where="config.json",
            fix="check the config.json",
        ) from None
    return [part for part in parts.found if part.params]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Components of the same layers, collected one by one; ``module`` begins their names."""

    layers: tuple[int, ...]
    module: str
    found: list[WeightComponent] = field(default_factory=list)

    def matrix(
        self, modules: tuple[str, ...], rows: int, width: int, *, whole: bool = False
    ) -> WeightComponent:
        part = matrix(
            modules[0],
            WeightKind.ATTENTION,
            rows,
            width,
            layers=self.layers,
            shard=Shard.REPLICATED if whole else Shard.SPLIT,
            modules=tuple(f"{self.module}.{name}" for name in modules),
        )
        self.found.append(part)
        return part

    def plain(
        self, name: str, params: int, *, whole: bool = False, dtype_bytes: int | None = None
    ) -> None:
        self.found.append(
            plain(
                name,
                params,
                self.layers,
                shard=Shard.REPLICATED if whole else Shard.SPLIT,
                dtype_bytes=dtype_bytes,
            )
        )


def _first(config: dict[str, Any], *keys: str) -> int:
    for key in keys:
        if config.get(key) not in (None, "auto"):
            return int(config[key])
    raise KeyError(keys[0])


def _expanded(config: dict[str, Any]) -> int:
    return _first(config, "mamba_expand", "expand") * int(config["hidden_size"])


def _mamba1(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    hidden, state = int(config["hidden_size"]), _first(config, "mamba_d_state", "state_size")
    inner = _first(config, *mixer.inner) if mixer.inner else _expanded(config)
    named = [config[key] for key in ("mamba_dt_rank", "time_step_rank") if key in config]
    if not named:
        raise KeyError("time_step_rank")
    rank = ceil_div(hidden, 16) if named[0] == "auto" else int(named[0])
    parts.plain("conv1d", inner * _first(config, "mamba_d_conv", "conv_kernel"))
    parts.plain("in_proj", hidden * 2 * inner)
    parts.plain("x_proj", inner * (rank + 2 * state))
    parts.plain("dt_proj", rank * inner)
    parts.plain("dt_bias", inner)
    parts.plain("A", inner * state, dtype_bytes=mixer.decay_bytes)
    parts.plain("D", inner)
    parts.plain("out_proj", inner * hidden)
    if flag(mixer.conv_bias, config):
        parts.plain("conv1d_bias", inner)
    if flag(mixer.bias, config):
        parts.plain("in_proj_bias", 2 * inner)
        parts.plain("out_proj_bias", hidden, whole=True)
    if flag(mixer.norm, config):
        parts.plain("dt_b_c_norms", rank + 2 * state, whole=True)


def _mamba2(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    hidden = int(config["hidden_size"])
    heads = _first(config, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    groups = _first(config, "n_groups", "mamba_n_groups", "mamba_ngroups")
    kernel = _first(config, "conv_kernel", "mamba_d_conv")
    state = _first(config, "ssm_state_size", "mamba_d_state", "state_size")
    inner = next((int(config[key]) for key in mixer.inner if config.get(key)), 0)
    if not inner:
        of_heads = heads * _first(config, "mamba_head_dim") if mixer.inner_of_heads else 0
        inner = of_heads or _expanded(config)
    # TP has to divide the groups of B and C; a single group is repeated on every rank.
    one, both, rows = groups == 1, 2 * groups * state, 2 * inner + heads
    parts.matrix(("in_proj",), rows, hidden)
    parts.matrix(("in_proj",), both, hidden, whole=one)
    parts.matrix(("out_proj",), inner, hidden)
    parts.plain("conv1d", inner * kernel)
    parts.plain("conv1d_bc", both * kernel, whole=one)
    parts.plain("A", heads, dtype_bytes=mixer.decay_bytes)
    parts.plain("D", heads)
    parts.plain("dt_bias", heads)
    if flag(mixer.conv_bias, config):
        parts.plain("conv1d_bias", inner)
        parts.plain("conv1d_bc_bias", both, whole=one)
    if flag(mixer.bias, config):
        parts.plain("in_proj_bias", rows)
        parts.plain("in_proj_bc_bias", both, whole=one)
        parts.plain("out_proj_bias", hidden, whole=True)
    if flag(mixer.norm, config):
        parts.plain("gated_norm", inner)


def _gated_delta_net(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    hidden, heads = int(config["hidden_size"]), int(config["linear_num_value_heads"])
    value_dim = int(config["linear_value_head_dim"])
    keys = int(config["linear_num_key_heads"]) * int(config["linear_key_head_dim"])
    values = heads * value_dim
    parts.matrix(mixer.inputs, 2 * (keys + values), hidden)
    parts.matrix(mixer.gates, 2 * heads, hidden)
    parts.matrix((mixer.output,), values, hidden)
    parts.plain("conv1d", (2 * keys + values) * int(config["linear_conv_kernel_dim"]))
    parts.plain("dt_bias", heads)
    parts.plain("A_log", heads, dtype_bytes=mixer.decay_bytes)
    parts.plain("gated_norm", value_dim, whole=True)


def _kda(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    hidden, linear = int(config["hidden_size"]), config["linear_attn_config"]
    heads, size = int(linear["num_heads"]), int(linear["head_dim"])
    inner, full_gate = heads * size, bool(linear.get("use_full_rank_gate"))
    names = ("q_proj", "k_proj", "v_proj", "b_proj")
    if full_gate:
        part = parts.matrix((*names, "g_proj"), 4 * inner + heads, hidden)
        if size % _KDA_ROW_MULTIPLE == 0:
            # The padded rows include the replicated ones; these being a multiple themselves,
            # rounding up the others alone says the same.
            parts.found[-1] = replace(part, split_multiple=_KDA_ROW_MULTIPLE)
    else:
        parts.matrix(names, 3 * inner + heads, hidden)
        parts.matrix(("g_a_proj",), size, hidden, whole=True)
        parts.matrix(("g_b_proj",), inner, size)
    parts.matrix(("f_a_proj",), size, hidden, whole=True)
    parts.matrix(("f_b_proj",), inner, size)
    parts.matrix(("o_proj",), inner, hidden)
    kernel = int(linear["short_conv_kernel_size"])
    parts.plain("conv1d", 3 * inner * kernel, dtype_bytes=_FP32)
    parts.plain("dt_bias", inner, dtype_bytes=_FP32)
    parts.plain("A_log", heads, dtype_bytes=mixer.decay_bytes)
    parts.plain("gated_norm", size, whole=True)


def _short_conv(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    width = _first(config, *mixer.inner, "hidden_size")
    parts.matrix(("in_proj",), 3 * width, width)
    parts.matrix(("out_proj",), width, width)
    parts.plain("conv", width * int(config["conv_L_cache"]))
    if flag(mixer.conv_bias, config):
        parts.plain("conv_and_in_proj_bias", 4 * width)
        parts.plain("out_proj_bias", width, whole=True)


def _linear_attention(parts: _Parts, mixer: Mixer, config: dict[str, Any]) -> None:
    del mixer
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    inner = heads * int(config.get("head_dim") or hidden // heads)
    parts.matrix(("qkv_proj",), 3 * inner, hidden)
    parts.matrix(("output_gate",), inner, hidden)
    parts.matrix(("out_proj",), inner, hidden)
    parts.plain("norm", inner)
