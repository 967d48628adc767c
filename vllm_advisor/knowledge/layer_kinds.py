"""Which layers of a hybrid model attend and which recur: the many ways configs say it."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Layers

ATTENTION = "attention"
RECURRENT = "recurrent"
Kinds = tuple[tuple[str, ...], ...]


def hybrid_kinds(name: str, layout: Layers, config: dict[str, Any]) -> Kinds:
    """For each layer, the caches it has: attention, recurrent, both or none.

    Raises:
        NotModelledError: the config does not say, or names a kind nobody knows.
    """
    count = int(config["num_hidden_layers"])
    if layout.kinds == "both":
        return ((ATTENTION, RECURRENT),) * count
    if layout.kinds == "recurrent":
        return ((RECURRENT,),) * count
    if layout.kinds == "period":
        period = int(config["attn_layer_period"])
        offset = int(config["attn_layer_offset"])
        return tuple((ATTENTION if i % period == offset else RECURRENT,) for i in range(count))
    if layout.kinds == "kimi":
        linear = config.get("linear_attn_config") or {}
        if linear.get("kda_layers"):  # counted from 1
            recurrent = {int(i) - 1 for i in linear["kda_layers"]}
            return tuple((RECURRENT if i in recurrent else ATTENTION,) for i in range(count))
    names = kind_names(layout, config, count)
    unknown = sorted(set(names) - {*layout.attention, *layout.recurrent, *layout.neither})
    if unknown or len(names) < count:
        raise NotModelledError(
            f"{name}: layer kinds {', '.join(map(str, unknown)) or f'of {len(names)} layers'} "
            f"for {count} layers are not modelled",
            fix="take the KV cache figures from vLLM's start-up log for this model",
        )
    return tuple(_kinds(layout, kind) for kind in names[:count])


def _kinds(layout: Layers, kind: Any) -> tuple[str, ...]:
    if kind in layout.attention:
        # Zamba2 counts an attention layer as one that recurs as well.
        return (ATTENTION, RECURRENT) if layout.attention_recurs else (ATTENTION,)
    return (RECURRENT,) if kind in layout.recurrent else ()


def kind_names(layout: Layers, config: dict[str, Any], count: int) -> list[Any]:
    """What the config calls each layer's kind; empty where it does not say."""
    for key in layout.kinds_keys:
        if config.get(key):
            return list(config[key])  # a list, or Nemotron-H's one letter per layer
    interval = config.get("full_attention_interval") or layout.full_every
    if interval:
        attention, recurrent = layout.attention[0], layout.recurrent[0]
        return [recurrent if (i + 1) % int(interval) else attention for i in range(count)]
    indices = config.get("attn_layer_indices") or config.get("full_attn_idxs")
    if indices:
        chosen = {int(i) for i in indices}
        return [layout.attention[0] if i in chosen else layout.recurrent[0] for i in range(count)]
    return []
