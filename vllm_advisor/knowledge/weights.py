"""From config.json to parameters by component, counted as vLLM's model code allocates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.architectures import Architecture, Layers
from vllm_advisor.knowledge.attention_weights import (
    Heads,
    block_indexers,
    grouped_query,
    latent,
    latent_indexers,
)
from vllm_advisor.knowledge.audio_weights import whisper_components
from vllm_advisor.knowledge.deepseek_v4_weights import deepseek_v4_components
from vllm_advisor.knowledge.feed_forward_weights import (
    dense_intermediate,
    dense_mlp,
    experts,
    sparse_layers,
)
from vllm_advisor.knowledge.gemma_weights import gemma_heads, gemma_parts, intermediate_sizes
from vllm_advisor.knowledge.hybrid_weights import hybrid_components
from vllm_advisor.knowledge.weight_parts import flag, matrix, plain, vocab
from vllm_advisor.types.model import WeightComponent, WeightKind
from vllm_advisor.types.runner import Head

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
    count, hidden = int(config["num_hidden_layers"]), int(config["hidden_size"])
    every = tuple(range(count))
    if arch.layers.pattern == "hybrid":
        return hybrid_components(arch, config, head_dim, tied=tied)
    if arch.layers.pattern == "encoder_decoder":
        return whisper_components(config)
    parts = _vocabulary(arch, config, tied=tied)
    if arch.layers.pattern == "deepseek_v4":
        parts += deepseek_v4_components(config)
    else:
        parts += _attention(arch, config, head_dim)
        parts += _feed_forward(arch, config)
    if arch.family is not None:
        parts += gemma_parts(arch.family, config)
    parts.append(plain("activation", arch.activation_params, every))
    norms = arch.norms_per_layer * arch.norm_params * hidden
    parts.append(plain("norms", norms, every))
    if not arch.first_norm:
        parts[-1] = replace(parts[-1], params=norms - arch.norm_params * hidden, layers=every[:1])
        parts.append(plain("norms", norms, every[1:]))
    if arch.final_norm:
        last = "every" if arch.final_norm_on_every_stage else "last"
        parts.append(plain("final_norm", arch.norm_params * hidden, stages=last))
    return tuple(part for part in parts if part.params)


def _vocabulary(arch: Architecture, config: dict[str, Any], *, tied: bool) -> list[WeightComponent]:
    rows, hidden = int(config["vocab_size"]), int(config["hidden_size"])
    # A tied embedding is the last stage's head as well.
    stages = "every" if arch.embedding_on_every_stage else "ends" if tied else "first"
    parts = [vocab("embed_tokens", WeightKind.EMBEDDING, rows, hidden, stages)]
    on = "every" if arch.head_on_every_stage else "last"
    if arch.token_types:
        types = int(config.get("type_vocab_size") or 0)
        parts.append(vocab("token_types", WeightKind.EMBEDDING, types, hidden, "first"))
    if arch.head is Head.LM and not tied:
        parts.append(vocab("lm_head", WeightKind.LM_HEAD, rows, hidden, on))
    if arch.positions is not None:
        longest = int(config["max_position_embeddings"]) + arch.positions
        table = plain("positions", longest * hidden, stages="every")
        if arch.split_positions:
            table = vocab("positions", WeightKind.EMBEDDING, longest, hidden, "first")
        parts.append(table)
    if arch.embedding_norm:
        parts.append(plain("embedding_norm", arch.norm_params * hidden))
    if flag(arch.head_bias, config):
        parts.append(replace(vocab("head_bias", WeightKind.NORM, rows, 1, on), modules=()))
    return parts


def _attention(arch: Architecture, config: dict[str, Any], head_dim: int) -> list[WeightComponent]:
    count = int(config["num_hidden_layers"])
    every = tuple(range(count))
    if arch.layers.pattern == "mla":
        parts = latent(config, every, times=arch.layers.attention_per_layer)
        return parts + latent_indexers(config, count)
    index = config.get(arch.layers.index_key or "")
    parts = block_indexers(config, index, count) if index else []
    if arch.family is not None:
        groups = gemma_heads(arch.layers, config, head_dim)
    else:
        kv_heads = int(config.get("num_key_value_heads") or config["num_attention_heads"])
        groups = [Heads(layers=every, head_dim=head_dim, kv_heads=kv_heads)]
    for heads in groups:
        parts += grouped_query(arch, config, heads)
    if flag(arch.query_gate, config):
        query, hidden = int(config["num_attention_heads"]) * head_dim, int(config["hidden_size"])
        names = ("self_attn.gate_proj",)
        kind = WeightKind.ATTENTION
        parts.append(matrix("gate_proj", kind, query, hidden, layers=every, modules=names))
    return parts


def _feed_forward(arch: Architecture, config: dict[str, Any]) -> list[WeightComponent]:
    count = int(config["num_hidden_layers"])
    every = tuple(range(count))
    parts: list[WeightComponent] = []
    dense = every
    if arch.moe is not None:
        sparse = sparse_layers(arch.moe, config, count)
        parts += experts(arch, arch.moe, config, sparse)
        if not arch.moe.beside_dense:
            dense = tuple(i for i in every if i not in set(sparse))
    if arch.family is not None:
        for size, layers in intermediate_sizes(config).items():
            parts += dense_mlp(arch, config, layers, size)
    elif dense:
        parts += dense_mlp(arch, config, dense, dense_intermediate(arch, config))
    return parts
