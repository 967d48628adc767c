"""From config.json to parameters by component, counted as vLLM's model code allocates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture, Layers, Moe
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

# An unknown architecture with only standard keys: the plain decoder most models are.
_PLAIN = Architecture(
    source="assumed:architecture-not-known",
    layers=Layers(pattern="uniform"),
    qkv_bias="attention_bias",
    output_bias="attention_bias",
)


def weight_components(
    architecture: Architecture | None, config: dict[str, Any], head_dim: int, *, tied: bool
) -> tuple[WeightComponent, ...]:
    """Parameters of the text model.

    Args:
        architecture: the layout; ``None`` takes a plain gated decoder.
        config: the text model's part of config.json.
        head_dim: elements per head.
        tied: the output head shares the embedding.
    """
    arch = architecture or _PLAIN
    count = int(config["num_hidden_layers"])
    hidden = int(config["hidden_size"])
    every = tuple(range(count))
    vocabulary = int(config["vocab_size"])
    # A tied embedding is the last stage's head as well.
    stages = "every" if arch.embedding_on_every_stage else "ends" if tied else "first"
    parts = [_vocab("embed_tokens", WeightKind.EMBEDDING, vocabulary, hidden, stages)]
    if not tied:
        parts.append(_vocab("lm_head", WeightKind.LM_HEAD, vocabulary, hidden, "last"))
    parts += _mla(config, every) if arch.layers.pattern == "mla" else _gqa(arch, config, head_dim)
    dense = every
    if arch.moe is not None:
        sparse = _sparse_layers(arch.moe, config, count)
        dense = tuple(i for i in every if i not in set(sparse))
        parts += _experts(arch, arch.moe, config, sparse)
    parts += _dense(arch, config, dense)
    parts.append(_norm("norms", arch.norms_per_layer * arch.norm_params * hidden, every))
    parts.append(replace(_norm("final_norm", arch.norm_params * hidden), stages="last"))
    return tuple(p for p in parts if p.params)


def _flag(value: bool | str, config: dict[str, Any]) -> bool:
    return bool(config.get(value)) if isinstance(value, str) else value


def _vocab(name: str, kind: WeightKind, rows: int, hidden: int, stages: str) -> WeightComponent:
    return WeightComponent(
        name=name,
        kind=kind,
        params=rows * hidden,
        shard=Shard.VOCAB,
        linear=False,
        rows=rows,
        stages=stages,
    )


def _norm(name: str, params: int, layers: tuple[int, ...] = ()) -> WeightComponent:
    return WeightComponent(
        name=name,
        kind=WeightKind.NORM,
        params=params,
        layers=layers,
        shard=Shard.REPLICATED,
        linear=False,
    )


def _gqa(arch: Architecture, config: dict[str, Any], head_dim: int) -> list[WeightComponent]:
    layers = tuple(range(int(config["num_hidden_layers"])))
    hidden = int(config["hidden_size"])
    heads = int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    query, key_value = heads * head_dim, 2 * kv_heads * head_dim
    qkv_bias = _flag(arch.qkv_bias, config)

    def part(name: str, params: int, shard: Shard, *, linear: bool = True) -> WeightComponent:
        return WeightComponent(
            name=name,
            kind=WeightKind.ATTENTION if linear else WeightKind.NORM,
            params=params,
            layers=layers,
            shard=shard,
            linear=linear,
        )

    parts = [
        part("q_proj", hidden * query, Shard.SPLIT),
        part("kv_proj", hidden * key_value, Shard.KV_HEADS),
        part("o_proj", query * hidden, Shard.SPLIT),
    ]
    if qkv_bias:
        parts.append(part("q_bias", query, Shard.SPLIT, linear=False))
        parts.append(part("kv_bias", key_value, Shard.KV_HEADS, linear=False))
    if _flag(arch.output_bias, config):
        parts.append(part("o_bias", hidden, Shard.REPLICATED, linear=False))
    if arch.attention_sinks:
        parts.append(part("sinks", heads, Shard.SPLIT, linear=False))
    if arch.qk_norm == "head":
        parts.append(part("qk_norm", 2 * head_dim, Shard.REPLICATED, linear=False))
    elif arch.qk_norm == "full":
        parts.append(part("qk_norm", query + key_value // 2, Shard.REPLICATED, linear=False))
    return parts


def _mla(config: dict[str, Any], layers: tuple[int, ...]) -> list[WeightComponent]:
    """Multi-head latent attention (vllm/model_executor/models/deepseek_v2.py).

    The down-projections are replicated; kv_b_proj is kept and its absorbed copies W_UK_T and W_UV
    are added in the model's dtype after loading (layers/attention/mla_attention.py).
    """
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    nope, rope = int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
    value, latent = int(config["v_head_dim"]), int(config["kv_lora_rank"])
    query_rank = config.get("q_lora_rank")

    def part(name: str, params: int, shard: Shard, *, linear: bool = True) -> WeightComponent:
        kind = WeightKind.ATTENTION if linear else WeightKind.NORM
        return WeightComponent(
            name=name, kind=kind, params=params, layers=layers, shard=shard, linear=linear
        )

    parts = [
        part("kv_a_proj", hidden * (latent + rope), Shard.REPLICATED),
        part("kv_a_norm", latent, Shard.REPLICATED, linear=False),
        part("kv_b_proj", latent * heads * (nope + value), Shard.SPLIT),
        part("o_proj", heads * value * hidden, Shard.SPLIT),
        part("mla_absorbed", latent * heads * (nope + value), Shard.SPLIT, linear=False),
    ]
    if query_rank:
        rank = int(query_rank)
        parts.append(part("q_a_proj", hidden * rank, Shard.REPLICATED))
        parts.append(part("q_a_norm", rank, Shard.REPLICATED, linear=False))
        parts.append(part("q_b_proj", rank * heads * (nope + rope), Shard.SPLIT))
    else:
        parts.append(part("q_proj", hidden * heads * (nope + rope), Shard.SPLIT))
    return parts


def _dense(
    arch: Architecture, config: dict[str, Any], layers: tuple[int, ...]
) -> list[WeightComponent]:
    if not layers:
        return []
    hidden = int(config["hidden_size"])
    key = arch.moe.dense_intermediate if arch.moe else None
    intermediate = int(config.get(key or "intermediate_size") or config["intermediate_size"])
    inputs = 2 if arch.gated_mlp else 1
    parts = [
        WeightComponent(
            name="mlp",
            kind=WeightKind.MLP,
            params=(inputs + 1) * hidden * intermediate,
            layers=layers,
        )
    ]
    if _flag(arch.mlp_bias, config):
        parts.append(
            WeightComponent(
                name="mlp_up_bias",
                kind=WeightKind.NORM,
                params=inputs * intermediate,
                layers=layers,
                linear=False,
            )
        )
        parts.append(_norm("mlp_down_bias", hidden, layers))
    return parts


def _experts(
    arch: Architecture, moe: Moe, config: dict[str, Any], layers: tuple[int, ...]
) -> list[WeightComponent]:
    if not layers:
        return []
    hidden, experts = int(config["hidden_size"]), int(config[moe.experts])
    intermediate = int(config[moe.intermediate])
    matrices = 3 if arch.gated_mlp else 2
    parts = [
        WeightComponent(
            name="experts",
            kind=WeightKind.EXPERTS,
            params=experts * matrices * hidden * intermediate,
            layers=layers,
            shard=Shard.EXPERTS,
            split_size=intermediate,
            split_multiple=moe.rank_multiple,
        ),
        replace(_norm("router", hidden * experts, layers), dtype_bytes=moe.router_bytes),
    ]
    if moe.router_bias:
        parts.append(_norm("router_bias", experts, layers))
    if moe.correction_bias:
        # FP32 whatever the model's dtype (vllm/model_executor/models/deepseek_v2.py).
        parts.append(replace(_norm("correction_bias", experts, layers), dtype_bytes=4))
    if moe.expert_bias:
        parts.append(
            WeightComponent(
                name="expert_bias",
                kind=WeightKind.NORM,
                params=experts * ((matrices - 1) * intermediate + hidden),
                layers=layers,
                shard=Shard.EXPERTS,
                linear=False,
            )
        )
    shared = _shared_intermediate(moe, config, intermediate)
    if shared:
        parts.append(
            WeightComponent(
                name="shared_experts",
                kind=WeightKind.MLP,
                params=matrices * hidden * shared,
                layers=layers,
            )
        )
    if moe.shared_gate:
        parts.append(_norm("shared_gate", hidden, layers))
    return parts


def _shared_intermediate(moe: Moe, config: dict[str, Any], routed: int) -> int:
    if moe.shared_intermediate:
        return int(config.get(moe.shared_intermediate) or 0)
    number = int(config.get(moe.shared_count) or 0) if moe.shared_count else moe.shared_count_fixed
    return number * routed


def _sparse_layers(moe: Moe, config: dict[str, Any], count: int) -> tuple[int, ...]:
    if not config.get(moe.experts):
        raise NotModelledError(
            f"config.json has no {moe.experts}, which this architecture's experts need",
            fix="check the config.json; a dense variant of this architecture is not known",
        )
    first = int(config.get(moe.dense_first) or 0) if moe.dense_first else 0
    step = int(config.get(moe.sparse_step) or 1) if moe.sparse_step else 1
    dense = set(config.get(moe.dense_list) or ()) if moe.dense_list else set()
    # Qwen and Llama 4 count (i + 1) % step, DeepSeek i % step; with a step of 1 they agree, and
    # no published DeepSeek-type config has another.
    return tuple(i for i in range(first, count) if i not in dense and (i + 1) % step == 0)
