"""Weights of models with recurrent layers: which layer has a mixer, attention, an MLP, experts.

Counted as vLLM's model code allocates them (the ``source`` of each file in
``profiles/architectures``); the mixers themselves are in ``recurrent_weights``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture, Moe
from vllm_advisor.knowledge.attention_weights import Heads, grouped_query, latent
from vllm_advisor.knowledge.feed_forward_weights import dense_mlp, experts, sparse_layers
from vllm_advisor.knowledge.layer_kinds import ATTENTION, hybrid_kinds
from vllm_advisor.knowledge.recurrent_weights import recurrent_components
from vllm_advisor.knowledge.shared_block_weights import shared_blocks
from vllm_advisor.knowledge.weight_parts import Layers, flag, matrix, plain, vocab
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind
from vllm_advisor.units import ceil_div

_SPARSE = ("moe", "E")  # Nemotron-H's names of layers without a mixer
_DENSE = ("mlp", "-")


def hybrid_components(
    arch: Architecture, config: dict[str, Any], head_dim: int, *, tied: bool
) -> tuple[WeightComponent, ...]:
    """Parameters of a text model whose layers recur, attend, or both.

    Args:
        arch: the layout; its pattern is ``hybrid``.
        config: the text model's part of config.json.
        head_dim: elements per attention head.
        tied: the output head shares the embedding, as far as the config goes.

    Raises:
        NotModelledError: a key that the weights depend on is missing.
    """
    name = arch.source.rpartition("#")[2].rpartition("/")[2]
    filled = {**arch.defaults, **{k: v for k, v in config.items() if v is not None}}
    if arch.layers.recurrent_kind is None:
        raise NotModelledError(f"{name}: its recurrent layers are not described")
    kinds = hybrid_kinds(name, arch.layers, config)
    attends = tuple(i for i, of in enumerate(kinds) if ATTENTION in of)
    try:
        parts = _ends(arch, filled, tied=tied)
        parts += recurrent_components(arch.layers.recurrent_kind, arch.mixer, filled, kinds)
        if arch.feed_forward == "shared_blocks":
            parts += shared_blocks(filled, attends)
        elif attends:
            parts += _attention(arch, filled, head_dim, attends)
        parts += _feed_forward(arch, filled, len(kinds))
        parts += _layer_norms(arch, filled, tuple(range(len(kinds))))
    except KeyError as error:
        raise NotModelledError(
            f"{name}: config.json has no {error}, which its weights need",
            where="config.json",
            fix="check the config.json",
        ) from None
    return tuple(part for part in parts if part.params)


def _ends(arch: Architecture, config: dict[str, Any], *, tied: bool) -> list[WeightComponent]:
    hidden, rows = int(config["hidden_size"]), int(config["vocab_size"])
    tied = {"never": False, "always": True}.get(arch.ties, tied)
    first = "every" if arch.embedding_on_every_stage else "ends" if tied else "first"
    parts = [vocab("embed_tokens", WeightKind.EMBEDDING, rows, hidden, first)]
    if not tied:
        head = "every" if arch.head_on_every_stage else "last"
        parts.append(vocab("lm_head", WeightKind.LM_HEAD, rows, hidden, head))
    last = "every" if arch.final_norm_on_every_stage else "last"
    parts.append(plain("final_norm", hidden, stages=last))
    if config.get("attn_res_block_size"):
        parts.append(plain("output_residual", 2 * hidden, stages=last))
    return parts


def _layer_norms(
    arch: Architecture, config: dict[str, Any], layers: Layers
) -> list[WeightComponent]:
    hidden = int(config["hidden_size"])
    parts = [plain("norms", arch.norms_per_layer * hidden, layers)]
    if config.get("attn_res_block_size"):
        # Kimi K3 mixes earlier residuals before attention and MLP: a norm and a vector each.
        parts.append(plain("residual_norms", 4 * hidden, layers))
    return parts


def _attention(
    arch: Architecture, config: dict[str, Any], head_dim: int, layers: Layers
) -> list[WeightComponent]:
    hidden, number = int(config["hidden_size"]), int(config["num_attention_heads"])
    if arch.layers.latent:
        parts = latent(config, layers)
        if config.get("mla_use_output_gate"):
            parts.append(_wide("g_proj", number * int(config["v_head_dim"]), hidden, layers))
        return parts
    kv_heads = int(config.get("num_key_value_heads") or number)
    parts = grouped_query(arch, config, Heads(layers=layers, head_dim=head_dim, kv_heads=kv_heads))
    if flag(arch.query_gate, config):
        parts.append(_wide("q_proj", number * head_dim, hidden, layers))
        if flag(arch.qkv_bias, config):
            parts.append(plain("q_gate_bias", number * head_dim, layers, shard=Shard.SPLIT))
    module = arch.attention_module
    return [
        replace(p, modules=tuple(m.replace("self_attn", module) for m in p.modules)) for p in parts
    ]


def _wide(module: str, rows: int, width: int, layers: Layers) -> WeightComponent:
    """The output gate: a matrix of its own, or more rows of the queries'."""
    names = (f"self_attn.{module}",)
    return matrix("output_gate", WeightKind.ATTENTION, rows, width, layers=layers, modules=names)


def _feed_forward(arch: Architecture, config: dict[str, Any], count: int) -> list[WeightComponent]:
    every, moe = tuple(range(count)), arch.moe
    sparse: Layers = ()
    dense = every
    if arch.feed_forward in ("none", "shared_blocks"):
        return []
    if arch.feed_forward == "named":
        names: Any = next(config[key] for key in arch.layers.kinds_keys if config.get(key))
        dense = tuple(i for i, of in enumerate(names) if of in _DENSE)
        sparse = tuple(i for i, of in enumerate(names) if of in _SPARSE)
    elif moe is not None:
        sparse = _sparse(moe, config, count)
        dense = every if moe.beside_dense else tuple(i for i in every if i not in set(sparse))
    parts = _dense(arch, config, dense)
    if moe is not None and sparse:
        routed = experts(arch, moe, config, sparse)
        parts += _in_latent_space(moe, config, routed, sparse) if moe.latent else routed
    return parts


def _sparse(moe: Moe, config: dict[str, Any], count: int) -> Layers:
    if not moe.period:
        return sparse_layers(moe, config, count)
    period, offset = int(config[moe.period]), int(config[moe.offset or ""])
    # Jamba with one expert has plain MLPs.
    several = int(config[moe.experts]) > 1
    return tuple(i for i in range(count) if several and i % period == offset)


def _in_latent_space(
    moe: Moe, config: dict[str, Any], parts: list[WeightComponent], layers: Layers
) -> list[WeightComponent]:
    """Experts that work on a projection of the hidden state, replicated into and out of it."""
    hidden, size = int(config["hidden_size"]), int(config.get(moe.latent or "") or 0)
    if not size:
        return parts
    out = [
        replace(p, params=p.params // hidden * size) if p.name == "experts" else p for p in parts
    ]
    for module, rows, width in zip(moe.projections, (size, hidden), (hidden, size), strict=True):
        part = matrix(
            module,
            WeightKind.MLP,
            rows,
            width,
            layers=layers,
            shard=Shard.REPLICATED,
            modules=(f"{moe.block}.{module}",),
        )
        out.append(
            replace(
                part,
                linear=moe.latent_quantized,
                modules=part.modules if moe.latent_quantized else (),
            )
        )
    if config.get(moe.latent_norm or ""):
        out.append(plain("latent_norm", size, layers))
    if config.get("mlp_bias"):
        out.append(plain("latent_biases", size + hidden, layers))
    return out


def _dense(arch: Architecture, config: dict[str, Any], layers: Layers) -> list[WeightComponent]:
    if not layers:
        return []
    if arch.adjusted_mlp:
        return dense_mlp(arch, config, layers, _adjusted(config))
    key = (arch.moe.dense_intermediate if arch.moe else None) or "intermediate_size"
    sizes: Any = config[key]
    if isinstance(sizes, list):  # Nemotron-H: one size, or one for each MLP
        sizes = sizes * len(layers) if len(sizes) == 1 else sizes
        each = zip(layers, sizes, strict=True)
        return [p for i, size in each for p in dense_mlp(arch, config, (i,), int(size))]
    return dense_mlp(arch, config, layers, int(sizes))


def _adjusted(config: dict[str, Any]) -> int:
    """LFM2's width (vllm/model_executor/models/lfm2.py#Lfm2MLP)."""
    size = int(config.get("block_ff_dim") or config["intermediate_size"])
    if not config["block_auto_adjust_ff_dim"]:
        return size
    size = int(config["block_ffn_dim_multiplier"] * int(2 * size / 3))
    multiple = int(config["block_multiple_of"])
    return multiple * ceil_div(size, multiple)
