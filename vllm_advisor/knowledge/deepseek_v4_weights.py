"""DeepSeek-V4: shared keys and values, grouped output, compressors, hyper-connections.

Sources: vllm/models/deepseek_v4/attention.py, compressor.py, nvidia/model.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.weight_parts import Layers, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

_FP32, _INT32 = 4, 4
_SINK_HEADS = 64  # the decode kernel takes 64 or 128 heads a rank; the sinks are padded to that
_ATTENTION = WeightKind.ATTENTION


def deepseek_v4_components(config: dict[str, Any]) -> list[WeightComponent]:
    """All parts of the stack but the layer norms."""
    count = int(config["num_hidden_layers"])
    every = tuple(range(count))
    ratios = [int(r) for r in config["compress_ratios"]][:count]
    compressed = {
        ratio: tuple(i for i, own in enumerate(ratios) if own == ratio)
        for ratio in sorted(set(ratios))
        if ratio > 1
    }
    parts = [*_attention(config, every), *_experts(config, count), *_connections(config, every)]
    head = int(config["head_dim"])
    for ratio, layers in compressed.items():
        parts += _compressor("compressor", config, layers, ratio, head)
        if ratio == 4:
            parts += _indexer(config, layers)
    return parts


def _attention(config: dict[str, Any], layers: Layers) -> list[WeightComponent]:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    head, query_rank = int(config["head_dim"]), int(config["q_lora_rank"])
    groups, output_rank = int(config["o_groups"]), int(config["o_lora_rank"])

    def part(name: str, split: int, other: int, shard: Shard = Shard.SPLIT) -> WeightComponent:
        modules = (f"attn.{name}",)
        return matrix(name, _ATTENTION, split, other, layers=layers, shard=shard, modules=modules)

    sinks = 128 if heads > _SINK_HEADS else _SINK_HEADS
    return [
        part("wq_a", query_rank, hidden, Shard.REPLICATED),
        part("wkv", head, hidden, Shard.REPLICATED),
        part("wq_b", heads * head, query_rank),
        part("wo_a", groups * output_rank, heads * head // groups),
        part("wo_b", groups * output_rank, hidden),
        plain("attention_norms", query_rank + head, layers),
        plain("sinks", sinks, layers, dtype_bytes=_FP32),
    ]


def _compressor(
    name: str, config: dict[str, Any], layers: Layers, ratio: int, size: int
) -> list[WeightComponent]:
    wide = (2 if ratio == 4 else 1) * size
    return [
        plain(name, 2 * wide * int(config["hidden_size"]), layers),
        plain(f"{name}_norm", size, layers),
        plain(f"{name}_positions", ratio * wide, layers, dtype_bytes=_FP32),
    ]


def _indexer(config: dict[str, Any], layers: Layers) -> list[WeightComponent]:
    size, heads = int(config["index_head_dim"]), int(config["index_n_heads"])
    query = matrix(
        "index_q",
        _ATTENTION,
        heads * size,
        int(config["q_lora_rank"]),
        layers=layers,
        shard=Shard.REPLICATED,
        modules=("attn.indexer.wq_b",),
    )
    weights = plain("index_weights", heads * int(config["hidden_size"]), layers)
    return [query, weights, *_compressor("index_compressor", config, layers, 4, size)]


def _experts(config: dict[str, Any], count: int) -> list[WeightComponent]:
    hidden, number = int(config["hidden_size"]), int(config["n_routed_experts"])
    size, shared = int(config["moe_intermediate_size"]), int(config.get("n_shared_experts") or 0)
    every, hashed = tuple(range(count)), tuple(range(int(config.get("num_hash_layers") or 0)))
    routed = matrix(
        "experts",
        WeightKind.EXPERTS,
        size,
        hidden,
        layers=every,
        count=3 * number,
        shard=Shard.EXPERTS,
        modules=("ffn.experts",),
    )
    parts = [replace(routed, experts=number), plain("router", hidden * number, every)]
    if hashed:
        table = int(config["vocab_size"]) * int(config["num_experts_per_tok"])
        parts.append(plain("hash_table", table, hashed, dtype_bytes=_INT32))
    if config.get("topk_method") == "noaux_tc":
        parts.append(plain("correction_bias", number, every[len(hashed) :], dtype_bytes=_FP32))
    if shared:
        names = tuple(f"ffn.shared_experts.{n}" for n in ("w1", "w2", "w3"))
        parts.append(
            matrix(
                "shared_experts",
                WeightKind.MLP,
                size * shared,
                hidden,
                layers=every,
                count=3,
                modules=names,
            )
        )
    return parts


def _connections(config: dict[str, Any], layers: Layers) -> list[WeightComponent]:
    """Hyper-connections around attention and experts, in FP32."""
    streams = int(config["hc_mult"])
    width, mixes = streams * int(config["hidden_size"]), (2 + streams) * streams
    head = streams * width + streams + 1
    return [
        plain("hyper_connections", 2 * (mixes * width + mixes + 3), layers, dtype_bytes=_FP32),
        plain("hyper_connection_head", head, dtype_bytes=_FP32, stages="every"),
    ]
