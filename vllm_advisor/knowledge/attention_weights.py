"""Parameters of attention layers, as vLLM fuses and shards them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.weight_parts import Layers, flag, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

_ATTENTION = WeightKind.ATTENTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The heads of some layers; ``key_value`` is false where a layer reads another's cache."""

    layers: Layers
    head_dim: int
    kv_heads: int
    key_value: bool = True


def grouped_query(
    arch: Architecture, config: dict[str, Any], heads: Heads
) -> list[WeightComponent]:
    """Query, key, value and output projections with their biases and norms."""
    hidden, number = int(config["hidden_size"]), int(config["num_attention_heads"])
    layers, size = heads.layers, heads.head_dim
    query, key = number * size, heads.kv_heads * size

    def of_kv_heads(part: WeightComponent) -> WeightComponent:
        return replace(part, shard=Shard.KV_HEADS, kv_heads=heads.kv_heads)

    parts = [
        matrix("q_proj", _ATTENTION, query, hidden, layers=layers, modules=("self_attn.q_proj",)),
        matrix("o_proj", _ATTENTION, query, hidden, layers=layers, modules=("self_attn.o_proj",)),
    ]
    bias = flag(arch.qkv_bias, config)
    if bias:
        parts.append(plain("q_bias", query, layers, shard=Shard.SPLIT))
    if heads.key_value:
        both = ("self_attn.k_proj", "self_attn.v_proj")
        pair = matrix("kv_proj", _ATTENTION, key, hidden, layers=layers, count=2, modules=both)
        parts.append(of_kv_heads(pair))
        if bias:
            parts.append(of_kv_heads(plain("kv_bias", 2 * key, layers)))
    if flag(arch.output_bias, config):
        parts.append(plain("o_bias", hidden, layers))
    if arch.attention_sinks:
        parts.append(plain("sinks", number, layers, shard=Shard.SPLIT))
    if not flag(arch.qk_norm_key or True, config):
        return parts
    if arch.qk_norm == "head":
        parts.append(plain("qk_norm", (2 if heads.key_value else 1) * size, layers))
    elif arch.qk_norm == "full":
        parts.append(plain("qk_norm", query + key, layers))
    elif arch.qk_norm == "full_split":
        parts.append(plain("q_norm", query, layers, shard=Shard.SPLIT))
        parts.append(of_kv_heads(plain("k_norm", key, layers)))
    return parts


def latent(config: dict[str, Any], layers: Layers, *, times: int = 1) -> list[WeightComponent]:
    """Multi-head latent attention (vllm/model_executor/models/deepseek_v2.py).

    The down-projections are replicated; kv_b_proj is kept and its absorbed copies W_UK_T and W_UV
    are added in the model's dtype after loading (layers/attention/mla_attention.py).

    Args:
        config: the text model's part of config.json.
        layers: which layers have it.
        times: attention blocks in one layer (LongCat has two).
    """
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    nope, rope = int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
    value, rank = int(config["v_head_dim"]), int(config["kv_lora_rank"])
    query_rank = config.get("q_lora_rank")

    def part(name: str, split: int, other: int, shard: Shard, module: str) -> WeightComponent:
        names = (f"self_attn.{module}",)
        return matrix(
            name, _ATTENTION, split, other, layers=layers, count=times, shard=shard, modules=names
        )

    whole, split = Shard.REPLICATED, Shard.SPLIT
    both = heads * (nope + value)
    parts = [
        part("kv_a_proj", rank + rope, hidden, whole, "kv_a_proj_with_mqa"),
        plain("kv_a_norm", times * rank, layers),
        part("kv_b_proj", both, rank, split, "kv_b_proj"),
        part("o_proj", heads * value, hidden, split, "o_proj"),
        replace(
            plain("mla_absorbed", times * rank * both, layers),
            kind=_ATTENTION,
            shard=split,
            after_loading=True,
        ),
    ]
    if query_rank:
        inner = int(query_rank)
        parts.append(part("q_a_proj", inner, hidden, whole, "q_a_proj"))
        parts.append(plain("q_a_norm", times * inner, layers))
        parts.append(part("q_b_proj", heads * (nope + rope), inner, split, "q_b_proj"))
    else:
        parts.append(part("q_proj", heads * (nope + rope), hidden, split, "q_proj"))
    return parts


def latent_indexers(config: dict[str, Any], count: int) -> list[WeightComponent]:
    """The indexers of DeepSeek sparse attention, whole on every rank.

    Their keys and head weights come from one fused matrix that stays in 16 bits; layers that
    share the indices of an earlier one have none.
    Source: vllm/model_executor/models/deepseek_v2.py#Indexer.
    """
    if not config.get("index_topk"):
        return []
    hidden, rank = int(config["hidden_size"]), int(config["q_lora_rank"])
    size, heads = int(config["index_head_dim"]), int(config["index_n_heads"])
    types = config.get("indexer_types") or ["full"] * count
    layers = tuple(i for i, kind in enumerate(types[:count]) if kind == "full")
    query = matrix(
        "index_q",
        _ATTENTION,
        heads * size,
        rank,
        layers=layers,
        shard=Shard.REPLICATED,
        modules=("self_attn.indexer.wq_b",),
    )
    return [
        query,
        plain("index_k_and_weights", (size + heads) * hidden, layers),
        plain("index_norm", 2 * size, layers, dtype_bytes=4),
    ]


def block_indexers(
    config: dict[str, Any], index: dict[str, Any], count: int
) -> list[WeightComponent]:
    """MiniMax-M3: index queries follow the KV heads, the one index key is on every rank.

    Source: vllm/models/minimax_m3/nvidia/model.py#MiniMaxM3SparseAttention.
    """
    hidden, heads = int(config["hidden_size"]), int(index["sparse_num_index_heads"])
    size = int(index["sparse_index_dim"])
    sparse = index.get("sparse_attention_freq") or [1] * count
    layers = tuple(i for i, on in enumerate(sparse[:count]) if on)
    query = matrix(
        "index_q",
        _ATTENTION,
        heads * size,
        hidden,
        layers=layers,
        shard=Shard.KV_HEADS,
        modules=("self_attn.index_q_proj",),
    )
    key = matrix(
        "index_k",
        _ATTENTION,
        size,
        hidden,
        layers=layers,
        shard=Shard.REPLICATED,
        modules=("self_attn.index_k_proj",),
    )
    return [replace(query, kv_heads=heads), key, plain("index_norm", 2 * size, layers)]
