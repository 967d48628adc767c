"""What modules keep on the GPU beside their parameters: RoPE tables, scales, expert maps.

vLLM counts them in "Model loading took ... GiB". A table of cosines and sines is built once for
all layers that ask for the same one (vllm/model_executor/layers/rotary_embedding/__init__.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.weight_parts import Layers, plain
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    Shard,
    WeightComponent,
)
from vllm_advisor.types.rope import ROPE_TABLE, RopeFacts

_FP32 = 4
_INT32 = 4
_SCALES = 4  # of K, V, Q and probabilities (layers/attention/attention.py)
_MROPE = 4  # tables for longer videos (rotary_embedding/mrope.py#MRotaryEmbedding)
_PARTIAL = ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")
_FULL, _SLIDING = "full_attention", "sliding_attention"
_YARN = ("yarn", "deepseek_yarn")
# Gemma 4's full attention turns whole heads (rotary_embedding/gemma4_rope.py).
_WHOLE_HEADS = "proportional"


def buffers(
    architecture: Architecture | None,
    text: dict[str, Any],
    head_dim: int,
    specs: tuple[tuple[KVCacheSpec, ...], ...],
) -> tuple[WeightComponent, ...]:
    """Buffers of the text model.

    Args:
        architecture: the layout; without one nothing is known of them.
        text: the text model's part of config.json.
        head_dim: elements per head, of MLA those without and with RoPE.
        specs: what each layer caches.
    """
    if architecture is None:
        return ()
    layers = _attention_layers(architecture, specs)
    if not layers:
        return ()
    found = _rope_tables(architecture, text, head_dim, layers)
    if architecture.attention_scales:
        both = 2 if architecture.layers.pattern == "encoder_decoder" else 1
        count = _SCALES * architecture.layers.attention_per_layer * both
        found.append(plain("attention_scales", count, layers, dtype_bytes=_FP32))
    return tuple(replace(part, after_loading=True) for part in found if part.params)


def expert_maps(components: tuple[WeightComponent, ...]) -> tuple[WeightComponent, ...]:
    """Which experts a rank holds, in each layer that has some, with expert parallelism only.

    Source: vllm/model_executor/layers/fused_moe/routed_experts.py.
    """
    number = {i: part.experts for part in components if part.experts for i in part.layers}
    return tuple(
        replace(
            plain(
                "expert_map",
                experts,
                tuple(i for i in sorted(number) if number[i] == experts),
                shard=Shard.EXPERT_MAP,
                dtype_bytes=_INT32,
            ),
            after_loading=True,
        )
        for experts in sorted(set(number.values()))
    )


def rope_facts(raw: dict[str, Any], text: dict[str, Any]) -> RopeFacts:
    """One entry of ``rope_parameters``, or the older ``rope_scaling``."""
    return RopeFacts(
        rope_type=str(raw.get("rope_type") or raw.get("type") or "default"),
        factor=float(raw.get("factor") or 1.0),
        original_max_position_embeddings=raw.get("original_max_position_embeddings")
        or text.get("original_max_position_embeddings"),
        theta=raw.get("rope_theta") or text.get("rope_theta"),
    )


def _attention_layers(
    architecture: Architecture, specs: tuple[tuple[KVCacheSpec, ...], ...]
) -> Layers:
    """Layers that attend; outside of hybrids also those that cache nothing of their own."""
    if architecture.layers.pattern != "hybrid":
        return tuple(range(len(specs)))
    return tuple(
        i
        for i, layer in enumerate(specs)
        if any(spec.kind is not KVCacheSpecKind.MAMBA for spec in layer)
    )


def _rope_tables(
    architecture: Architecture, text: dict[str, Any], head_dim: int, layers: Layers
) -> list[WeightComponent]:
    rope, longest = architecture.rope, int(text["max_position_embeddings"])
    if rope.tables == "causal_mask":
        mask = plain("causal_mask", longest * longest, layers, dtype_bytes=1)
        return [replace(mask, shared=True)]
    if rope.tables == "none" or architecture.positions is not None:
        return []
    if rope.tables == "compressed":
        return _compressed(text, longest, layers)
    head = int(text["qk_rope_head_dim"]) if text.get("qk_rope_head_dim") else head_dim
    tables: dict[tuple[Any, ...], WeightComponent] = {}
    for kind, raw in _parameters(rope.tables, text).items():
        facts = rope_facts(raw, text)
        size = head
        if kind == _FULL:
            key = architecture.layers.global_head_dim_key
            size = int(text.get(key or "") or architecture.layers.global_head_dim or head)
        width = _width(size, raw, text)
        if facts.rope_type == _WHOLE_HEADS:
            width = size
        if rope.tables == "frequencies":  # the configured and the original ones
            part = plain("rope_frequencies", width // 2 * 2, layers, dtype_bytes=_FP32)
            tables[kind,] = replace(part, shared=True)
            continue
        times = (rope.video or _MROPE) if raw.get("mrope_section") else 1
        stretched = facts.rope_type in _YARN
        rows = facts.table_rows(longest) * times
        part = replace(
            plain(
                ROPE_TABLE,
                rows * width,
                layers,
                dtype_bytes=_FP32 if rope.float32 or (rope.float32_yarn and stretched) else None,
            ),
            rows=rows,
            shared=True,
        )
        tables[rows, width, str(sorted(raw.items()))] = part
        if rope.indexer and text.get("index_topk") and not text.get("indexer_rope_interleave"):
            tables["indexer", rows, width] = part
    return list(tables.values())


def _parameters(tables: str, text: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """RoPE parameters by layer type, of which each gets a table."""
    raw = text.get("rope_parameters") or text.get("rope_scaling") or {}
    nested = {kind: values for kind, values in raw.items() if isinstance(values, dict)}
    if nested:
        present = text.get("layer_types") or list(nested)
        return {kind: values for kind, values in nested.items() if kind in present}
    if tables == "local_and_global":
        # transformers' defaults of the two bases differ, as those of checkpoints do.
        return {_FULL: raw, _SLIDING: {"rope_theta": text.get("rope_local_base_freq")}}
    return {"": raw}


def _width(head: int, raw: dict[str, Any], text: dict[str, Any]) -> int:
    if text.get("rotary_dim"):
        return int(text["rotary_dim"])
    said = [part.get(key) for part in (raw, text) for key in _PARTIAL]
    return int(head * next((float(value) for value in said if value), 1.0))


def _compressed(text: dict[str, Any], longest: int, layers: Layers) -> list[WeightComponent]:
    """DeepSeek-V4: an FP32 table for compressed layers and one for the others.

    Source: vllm/models/deepseek_v4/common/rope.py#build_deepseek_v4_rope.
    """
    ratios = list(text["compress_ratios"])[: len(layers)]
    raw = text.get("rope_parameters") or text.get("rope_scaling") or {}
    stretched = rope_facts(raw.get("compress") or raw, text).table_rows(longest)
    found = []
    for rows, compressed in ((longest, False), (stretched, True)):
        own = tuple(i for i, ratio in enumerate(ratios) if (ratio > 1) is compressed)
        size = rows * int(text["qk_rope_head_dim"])
        table = replace(plain(ROPE_TABLE, size, own, dtype_bytes=_FP32), rows=rows, shared=True)
        found += [table] if own else []
    return found
