"""Gemma 3n and Gemma 4: layers of different shapes, and per-layer inputs beside them.

Sources: vllm/model_executor/models/gemma3n.py, gemma4.py.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.knowledge.architectures import Layers
from vllm_advisor.knowledge.attention_weights import Heads
from vllm_advisor.knowledge.weight_parts import matrix, plain, vocab
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

_FULL = "full_attention"
_FP32 = 4


def gemma_heads(layout: Layers, config: dict[str, Any], head_dim: int) -> list[Heads]:
    """Layers grouped by the shape of their heads; the last ones may read earlier caches."""
    count = int(config["num_hidden_layers"])
    shared = int(config.get(layout.shared_key or "") or 0)
    overrides = {int(i): keys for i, keys in (config.get("per_layer_config") or {}).items()}
    groups: dict[tuple[int, int, bool], list[int]] = {}
    for index, kind in enumerate(_types(layout, config, count)):
        size, heads = head_dim, int(config["num_key_value_heads"])
        if kind == _FULL:
            size = int(
                config.get(layout.global_head_dim_key or "") or layout.global_head_dim or size
            )
            heads = int(config.get(layout.global_heads_key or "") or heads)
        own = overrides.get(index, {})
        size, heads = int(own.get("head_dim") or size), int(own.get("num_key_value_heads") or heads)
        groups.setdefault((size, heads, index < count - shared), []).append(index)
    return [
        Heads(layers=tuple(layers), head_dim=size, kv_heads=heads, key_value=key_value)
        for (size, heads, key_value), layers in groups.items()
    ]


def _types(layout: Layers, config: dict[str, Any], count: int) -> list[str]:
    every = layout.full_every or count
    named = config.get("layer_types")
    return list(named or (("" if (i + 1) % every else _FULL) for i in range(count)))[:count]


def intermediate_sizes(config: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    """Intermediate size to layers: one for all, a list, or twice as wide in shared layers."""
    count, size = int(config["num_hidden_layers"]), config["intermediate_size"]
    first_shared = count - int(config.get("num_kv_shared_layers") or 0)
    doubled = bool(config.get("use_double_wide_mlp")) and first_shared > 0
    groups: dict[int, list[int]] = {}
    for index in range(count):
        own = int(size[index] if isinstance(size, list) else size)
        groups.setdefault(own * (2 if doubled and index >= first_shared else 1), []).append(index)
    return {own: tuple(layers) for own, layers in groups.items()}


def gemma_parts(family: str, config: dict[str, Any]) -> list[WeightComponent]:
    """What these families have beside attention, MLP and experts."""
    layers = tuple(range(int(config["num_hidden_layers"])))
    hidden = int(config["hidden_size"])
    parts = _per_layer_inputs(config, layers)
    if config.get("num_experts"):  # three more norms around the experts
        parts.append(plain("expert_norms", 3 * hidden, layers))
    if family == "gemma3n":
        parts += _alternating_updates(config, layers)
    return parts


def _per_layer_inputs(config: dict[str, Any], layers: tuple[int, ...]) -> list[WeightComponent]:
    width, hidden = int(config.get("hidden_size_per_layer_input") or 0), int(config["hidden_size"])
    if not width:
        return []
    rows = int(config.get("vocab_size_per_layer_input") or config["vocab_size"])
    total = width * len(layers)
    replicated, other = Shard.REPLICATED, WeightKind.OTHER

    def small(name: str) -> WeightComponent:
        return matrix(name, other, width, hidden, layers=layers, shard=replicated, modules=(name,))

    return [
        vocab("embed_tokens_per_layer", WeightKind.EMBEDDING, rows, total, "every"),
        matrix("per_layer_model_projection", other, total, hidden, stages="every"),
        plain("per_layer_projection_norm", width, stages="every"),
        small("per_layer_input_gate"),
        small("per_layer_projection"),
        plain("post_per_layer_input_norm", hidden, layers),
    ]


def _alternating_updates(config: dict[str, Any], layers: tuple[int, ...]) -> list[WeightComponent]:
    hidden, inputs = int(config["hidden_size"]), int(config["altup_num_inputs"])
    rank = int(config["laurel_rank"])
    coefficients = inputs * inputs + inputs * inputs**2 + hidden * inputs
    return [
        plain("altup", coefficients + hidden, layers),
        plain("altup_output_scale", hidden, layers, dtype_bytes=_FP32),
        matrix("laurel", WeightKind.OTHER, rank, hidden, layers=layers, count=2),
        plain("laurel_norm", hidden, layers),
        matrix(
            "altup_projections",
            WeightKind.OTHER,
            hidden,
            hidden,
            count=2 * (inputs - 1),
            stages="every",
        ),
    ]
