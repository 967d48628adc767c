"""Layers of a checkpoint that draft tokens (MTP): what they cache and what they weigh.

They are layers of the target's own kind, numbered after its last one, with a matrix that joins
the embedding and the target's hidden state; embedding and head are the target's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.architectures import Architecture, Layers, Mtp
from vllm_advisor.knowledge.kv_layers import kv_cache_layers
from vllm_advisor.knowledge.layer_kinds import kind_names
from vllm_advisor.knowledge.quantized_modules import quantized_components
from vllm_advisor.knowledge.weight_parts import matrix, plain
from vllm_advisor.knowledge.weights import weight_components
from vllm_advisor.types.model import (
    MtpFacts,
    QuantizationFacts,
    Shard,
    WeightComponent,
    WeightKind,
)

_HEAD = "hyper_connection_head"  # DeepSeek-V4's draft layers end in one of their own
# Lists with an entry for each layer, and what vLLM takes for a draft layer.
_PER_LAYER = {"indexer_types": "full", "mlp_layer_types": "sparse", "moe_layer_freq": 1}
_SPARSE_INDEX = "sparse_attention_config"
_SPARSE_LIST = "sparse_attention_freq"


def mtp_facts(
    name: str,
    architecture: Architecture | None,
    text: dict[str, Any],
    head_dim: int,
    *,
    quantization: QuantizationFacts | None,
    quantization_config: dict[str, Any] | None,
) -> MtpFacts | None:
    """The draft layers; ``None`` where the config has none or vLLM's are not described.

    Args:
        name: architecture class name, for messages.
        architecture: its layout.
        text: the text model's part of config.json.
        head_dim: elements per head.
        quantization: what was read of the checkpoint's quantization.
        quantization_config: the config it was read from.
    """
    mtp = architecture.mtp if architecture else None
    if architecture is None or mtp is None:
        return None
    named = text.get(mtp.count)
    count = mtp.default if named is None else int(named)
    kinds = _kinds(mtp, text, architecture.layers, count)
    if count < 1 or not kinds:
        return None
    first = int(text["num_hidden_layers"])
    longer = _longer(architecture.layers, text, kinds)
    layers, _ = kv_cache_layers(name, architecture, longer, head_dim)
    own = replace(architecture, moe=None) if mtp.dense else architecture
    parts = [
        replace(part, layers=tuple(i for i in part.layers if i >= first))
        for part in weight_components(own, longer, head_dim, tied=True)
        if part.name == _HEAD or (part.layers and part.layers[-1] >= first)
    ]
    joins = _fusion(mtp, int(text["hidden_size"]), tuple(range(first, first + count)))
    path = _path(mtp.prefix, first)
    if quantization_config and architecture.layers.pattern == "deepseek_v4":
        # ModelOpt leaves mtp.* as it was: these experts stay MXFP4, and vLLM builds them so.
        quantization_config = {**quantization_config, "moe_quant_algo": None}
    parts = list(quantized_components(parts, quantization_config, quantization, path=path))
    if quantization is None or quantization.method not in mtp.fusion_16_bit:
        joins = list(quantized_components(joins, quantization_config, quantization, path=path))
    else:
        joins = [replace(part, linear=False) for part in joins]
    return MtpFacts(
        predicts=named if named is None or not mtp.predicts else count,
        modules=int(text.get("num_nextn_predict_layers") or 1),
        kv_cache=layers[first:],
        components=tuple(
            replace(part, layers=tuple(i - first for i in part.layers)) for part in parts + joins
        ),
        shares_embedding=mtp.shares_embedding,
    )


def _path(prefix: str, first: int) -> Callable[[int], str]:
    return lambda layer: prefix.format(layer=layer, index=layer - first)


def _kinds(mtp: Mtp, text: dict[str, Any], layout: Layers, count: int) -> list[Any]:
    """What each draft layer is; Nemotron-H names them, as a list or one letter for each."""
    if mtp.kinds:
        return next((list(text[key]) for key in mtp.kinds if text.get(key)), [])
    first = text.get("layer_types") if mtp.first_kinds else None
    return list(first[:count]) if first else [layout.attention[0]] * count


def _longer(layout: Layers, text: dict[str, Any], kinds: list[Any]) -> dict[str, Any]:
    """The config of a model that has the draft layers behind its own."""
    count = int(text["num_hidden_layers"])
    longer = {**text, "num_hidden_layers": count + len(kinds)}
    key = next((k for k in layout.kinds_keys if text.get(k)), layout.kinds_keys[0])
    own = kind_names(layout, text, count) if layout.pattern == "hybrid" else text.get(key)
    if own:
        longer[key] = [*own[:count], *kinds]
    for listed, value in _PER_LAYER.items():
        if isinstance(text.get(listed), list):
            longer[listed] = [*text[listed][:count], *[value] * len(kinds)]
    sparse = text.get(_SPARSE_INDEX)
    if isinstance(sparse, dict) and sparse.get(_SPARSE_LIST):
        freq = [*sparse[_SPARSE_LIST][:count], *[1] * len(kinds)]
        longer[_SPARSE_INDEX] = {**sparse, _SPARSE_LIST: freq}
    return longer


def _fusion(mtp: Mtp, hidden: int, layers: tuple[int, ...]) -> list[WeightComponent]:
    """What joins embedding and hidden state, with the norms around it."""
    norms = plain("mtp_norms", mtp.norms * hidden, layers)
    if mtp.fusion == "plain":
        return [norms, plain("mtp_fusion", 2 * hidden * hidden, layers)]
    joined = matrix(
        "mtp_fusion",
        WeightKind.OTHER,
        hidden,
        hidden if mtp.fusion == "pair" else 2 * hidden,
        layers=layers,
        count=2 if mtp.fusion == "pair" else 1,
        shard=Shard.SPLIT if mtp.fusion == "column" else Shard.REPLICATED,
        modules=(mtp.fusion_module,),
    )
    return [norms, joined]
