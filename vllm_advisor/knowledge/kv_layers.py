"""From config.json to what each layer caches. Unknown keys that change the cache are refused."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import CACHE_KEYS, Architecture
from vllm_advisor.types.model import KVCacheSpec, KVCacheSpecKind
from vllm_advisor.types.source import Assumption, Confidence

_KINDS = {
    "full_attention": KVCacheSpecKind.FULL_ATTENTION,
    "sliding_attention": KVCacheSpecKind.SLIDING_WINDOW,
    "chunked_attention": KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION,
}


def kv_cache_specs(
    name: str, architecture: Architecture | None, config: dict[str, Any], head_dim: int
) -> tuple[tuple[KVCacheSpec, ...], tuple[Assumption, ...]]:
    """One spec per layer, and what had to be assumed.

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
        note = Assumption(
            id="architecture-not-known",
            text=f"{name} is not a known architecture; its config has only standard keys, so every "
            "layer is taken for full attention with a gated MLP",
            lowers_to=Confidence.LOW,
        )
        return (_full(config, head_dim),) * count, (note,)
    layers = architecture.layers
    full = _full(config, head_dim)
    if layers.pattern == "mla":
        latent = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
        mla = KVCacheSpec(
            kind=KVCacheSpecKind.MLA_ATTENTION, num_kv_heads=1, head_size=latent, head_size_v=0
        )
        return (mla,) * count, ()
    window = config.get(layers.window_key)
    if not window or layers.pattern == "uniform":
        return (full,) * count, ()
    windowed = KVCacheSpec(
        kind=layers.window_kind,
        num_kv_heads=full.num_kv_heads,
        head_size=head_dim,
        head_size_v=head_dim,
        window=int(window) + layers.window_extra,
    )
    if layers.pattern == "all_sliding" and not config.get("layer_types"):
        return (windowed,) * count, ()
    types = config.get("layer_types") or _types(architecture, config, count)
    unknown = sorted(set(types) - set(_KINDS))
    if unknown or len(types) != count:
        raise NotModelledError(
            f"{name}: layer_types {', '.join(map(str, unknown)) or f'has {len(types)} entries'} "
            f"for {count} layers is not modelled",
            fix="take the KV cache figures from vLLM's start-up log for this model",
        )
    full_kind = KVCacheSpecKind.FULL_ATTENTION
    return tuple(full if _KINDS[t] is full_kind else windowed for t in types), ()


def _types(architecture: Architecture, config: dict[str, Any], count: int) -> list[str]:
    layers = architecture.layers
    if layers.pattern == "window_from_layer":
        if not config.get("use_sliding_window"):
            return ["full_attention"] * count
        first = int(config.get("max_window_layers") or 0)
        return ["full_attention" if i < first else "sliding_attention" for i in range(count)]
    every = int(config.get(layers.full_every_key or "") or layers.full_every or 1)
    return ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(count)]


def _full(config: dict[str, Any], head_dim: int) -> KVCacheSpec:
    heads = int(config.get("num_key_value_heads") or config["num_attention_heads"])
    return KVCacheSpec(
        kind=KVCacheSpecKind.FULL_ATTENTION,
        num_kv_heads=heads,
        head_size=head_dim,
        head_size_v=head_dim,
    )


def _refuse_unexplained(
    name: str, architecture: Architecture | None, config: dict[str, Any]
) -> None:
    explained: set[str] = set()
    if architecture is not None:
        layers = architecture.layers
        explained = {"mla": {"kv_lora_rank"}, "uniform": set()}.get(layers.pattern, set())
        if layers.pattern != "mla":
            explained = explained | {layers.window_key, "layer_types"}
    present = {k for k in CACHE_KEYS if config.get(k) not in (None, False, [], {}, 0)}
    if set(config.get("layer_types") or ()) == {"full_attention"}:
        present.discard("layer_types")
    if config.get("use_sliding_window") is False:
        present.discard("sliding_window")
    unexplained = sorted(present - explained)
    if unexplained:
        raise NotModelledError(
            f"{name} sets {', '.join(unexplained)}, which changes the KV cache in a way that is "
            "not modelled yet",
            fix="take the KV cache figures from vLLM's start-up log, or use a model whose layers "
            "are full attention, sliding window or MLA",
        )
