"""From config.json to what each layer caches. Unknown keys that change the cache are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture, Layers
from vllm_advisor.knowledge.config_keys import CACHE_KEYS
from vllm_advisor.knowledge.layer_kinds import ATTENTION, RECURRENT, hybrid_kinds
from vllm_advisor.knowledge.pooling import GENERATING
from vllm_advisor.knowledge.recurrent_layers import recurrent_state
from vllm_advisor.knowledge.sparse_layers import (
    deepseek_v4_layers,
    with_block_indexers,
    with_indexers,
)
from vllm_advisor.types.model import KVCacheSpec, KVCacheSpecKind
from vllm_advisor.types.source import Assumption, Confidence

KVLayers = tuple[tuple[KVCacheSpec, ...], ...]

_KINDS = {
    "full_attention": KVCacheSpecKind.FULL_ATTENTION,
    "attention": KVCacheSpecKind.FULL_ATTENTION,
    "sliding_attention": KVCacheSpecKind.SLIDING_WINDOW,
    "chunked_attention": KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION,
}
_FULL = KVCacheSpecKind.FULL_ATTENTION
_16_BIT = 2


def kv_cache_layers(
    name: str, architecture: Architecture | None, config: dict[str, Any], head_dim: int
) -> tuple[KVLayers, tuple[Assumption, ...]]:
    """What every layer caches, and what had to be assumed.

    Args:
        name: architecture class name, for messages.
        architecture: its layout, or ``None`` when the class is not known.
        config: the text model's part of config.json.
        head_dim: elements per head.

    Raises:
        NotModelledError: the config sets keys that change the cache and that no pattern explains.
    """
    _refuse_unexplained(name, architecture, config)
    count = int(config["num_hidden_layers"])
    if architecture is None:
        if not name.endswith(GENERATING):
            raise NotModelledError(
                f"{name} is not known: whether its tokens see each other, and so whether vLLM "
                "caches anything for it, is missing",
                where="config.json",
                fix="take the figures from vLLM's start-up log for this model",
            )
        note = Assumption(
            id="architecture-not-known",
            text=f"{name} is not a known architecture; its config has only standard keys, so every "
            "layer is taken for full attention with a gated MLP",
            lowers_to=Confidence.LOW,
        )
        return ((_full(config, head_dim),),) * count, (note,)
    layers = _layers(name, architecture, config, head_dim, count)
    index = config.get(architecture.layers.index_key or "")
    if index:
        layers = with_block_indexers(layers, index, _16_BIT)
    if config.get("per_layer_config"):
        layers = _overridden(layers, config["per_layer_config"])
    shared = int(config.get(architecture.layers.shared_key or "") or 0)
    if shared:  # the last layers read the cache of earlier ones and keep none
        layers = (*layers[: count - shared], *((),) * shared)
    return layers, ()


def _layers(
    name: str, architecture: Architecture, config: dict[str, Any], head_dim: int, count: int
) -> KVLayers:
    layout = architecture.layers
    if layout.pattern == "deepseek_v4":
        return deepseek_v4_layers(config, count)
    if layout.pattern == "encoder":
        return ((),) * count
    if layout.pattern == "mla":
        latent = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
        mla = KVCacheSpec(
            kind=KVCacheSpecKind.MLA_ATTENTION, num_kv_heads=1, head_size=latent, head_size_v=0
        )
        return with_indexers(mla, config, count * layout.attention_per_layer)
    full = _full(config, head_dim)
    if layout.pattern == "hybrid":
        return _hybrid(name, layout, config, full)
    if layout.pattern == "encoder_decoder":
        return ((full, replace(full, kind=KVCacheSpecKind.CROSS_ATTENTION)),) * count
    window = config.get(layout.window_key)
    if not window or layout.pattern == "uniform":
        return ((full,),) * count
    windowed = replace(
        full,
        kind=layout.window_kind,
        window=int(window) + layout.window_extra,
    )
    if layout.pattern == "all_sliding" and not config.get("layer_types"):
        return ((windowed,),) * count
    types = config.get("layer_types") or _types(layout, config, count)
    unknown = sorted(set(types) - set(_KINDS))
    if unknown or len(types) < count:
        raise NotModelledError(
            f"{name}: layer_types {', '.join(map(str, unknown)) or f'has {len(types)} entries'} "
            f"for {count} layers is not modelled",
            fix="take the KV cache figures from vLLM's start-up log for this model",
        )
    wide = _global(layout, config, full)
    return tuple((wide,) if _KINDS[t] is _FULL else (windowed,) for t in types[:count])


def _overridden(layers: KVLayers, overrides: dict[str, Any]) -> KVLayers:
    """Layers whose shape differs from the rest (transformers' ``per_layer_config``)."""
    changed = {int(index): keys for index, keys in overrides.items()}
    out = []
    for index, of in enumerate(layers):
        keys = changed.get(index, {})
        size, heads = keys.get("head_dim"), keys.get("num_key_value_heads")
        out.append(
            tuple(
                replace(
                    spec,
                    head_size=int(size or spec.head_size),
                    head_size_v=int(size or spec.head_size_v),
                    num_kv_heads=int(heads or spec.num_kv_heads),
                )
                for spec in of
            )
        )
    return tuple(out)


def _global(layout: Layers, config: dict[str, Any], full: KVCacheSpec) -> KVCacheSpec:
    """Full layers that have heads of their own (Gemma 4)."""
    size = config.get(layout.global_head_dim_key or "")
    heads = config.get(layout.global_heads_key or "")
    return replace(
        full,
        head_size=int(size or layout.global_head_dim or full.head_size),
        head_size_v=int(size or layout.global_head_dim or full.head_size_v),
        num_kv_heads=int(heads or full.num_kv_heads),
    )


def _hybrid(name: str, layout: Layers, config: dict[str, Any], full: KVCacheSpec) -> KVLayers:
    if layout.latent:
        latent = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
        full = KVCacheSpec(
            kind=KVCacheSpecKind.MLA_ATTENTION, num_kv_heads=1, head_size=latent, head_size_v=0
        )
    elif layout.attention_head_dim_key and config.get(layout.attention_head_dim_key):
        size = int(config[layout.attention_head_dim_key])
        full = replace(full, head_size=size, head_size_v=size)
    state = recurrent_state(name, layout, config)
    made = {ATTENTION: full, RECURRENT: state}
    return tuple(
        tuple(made[kind] for kind in kinds) for kinds in hybrid_kinds(name, layout, config)
    )


def _types(layout: Layers, config: dict[str, Any], count: int) -> list[str]:
    if layout.pattern == "window_from_layer":
        if not config.get("use_sliding_window"):
            return ["full_attention"] * count
        first = int(config.get("max_window_layers") or 0)
        return ["full_attention" if i < first else "sliding_attention" for i in range(count)]
    every = int(config.get(layout.full_every_key or "") or layout.full_every or 1)
    return ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(count)]


def _full(config: dict[str, Any], head_dim: int) -> KVCacheSpec:
    heads = config.get("num_key_value_heads") or config.get("num_attention_heads") or 0
    return KVCacheSpec(
        kind=_FULL, num_kv_heads=int(heads), head_size=head_dim, head_size_v=head_dim
    )


def _refuse_unexplained(
    name: str, architecture: Architecture | None, config: dict[str, Any]
) -> None:
    explained: set[str] = set()
    if architecture is not None:
        explained = set(architecture.layers.explained)
    present = {k for k in CACHE_KEYS if config.get(k) not in (None, False, [], {}, 0)}
    if set(config.get("layer_types") or ()) == {"full_attention"}:
        present.discard("layer_types")
    reads_switch = architecture is None or architecture.layers.pattern == "window_from_layer"
    if reads_switch and config.get("use_sliding_window") is False:
        present.discard("sliding_window")
    unexplained = sorted(present - explained)
    if unexplained:
        raise NotModelledError(
            f"{name} sets {', '.join(unexplained)}, which changes the KV cache in a way that is "
            "not modelled yet",
            fix="take the KV cache figures from vLLM's start-up log, or use a model of a known "
            "architecture",
        )
