"""From a config.json and what is known of the checkpoint to ModelFacts."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError, UnknownFactError
from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.buffers import buffers, expert_maps, rope_facts
from vllm_advisor.knowledge.config_types import check_types, reading, takes_null, with_defaults
from vllm_advisor.knowledge.kv_layers import kv_cache_layers
from vllm_advisor.knowledge.model_weights import model_weights
from vllm_advisor.knowledge.mtp import mtp_facts
from vllm_advisor.knowledge.pooling import find_adapted, labels
from vllm_advisor.knowledge.quantization import (
    declared_cache_dtype,
    quantization_config,
    quantization_facts,
)
from vllm_advisor.knowledge.text_config import served_part, text_part, usual_keys
from vllm_advisor.knowledge.wrappers import text_class
from vllm_advisor.types.model import ModelFacts, QuantizationFacts, WeightFacts
from vllm_advisor.types.rope import RopeFacts
from vllm_advisor.types.runner import Head
from vllm_advisor.types.serving import ServingFacts
from vllm_advisor.types.source import Assumption, Confidence, Source, SourceKind

# A model without attention has no heads and no positions; vLLM then takes 2,048 tokens
# (vllm/config/model.py#_get_and_verify_max_len).
_WITHOUT_ATTENTION = {"num_attention_heads": 0, "max_position_embeddings": 2048}
_LAYERS = 10_000  # no model has as many; each is kept in memory
_REQUIRED = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "vocab_size",
    "max_position_embeddings",
)
# A key of config.json that begins so says that the model takes this beside text.
_MODALITY_KEYS = {
    "image": ("vision_config", "vision_tower", "visual", "image_token"),
    "video": ("video_token",),
    "audio": ("audio_config", "audio_token", "speech_config"),
}


def model_facts(
    model_id: str,
    config: dict[str, Any],
    *,
    source: Source,
    checkpoint_bytes: int | None = None,
    weights_source: Source | None = None,
    hf_quant_config: dict[str, Any] | None = None,
    serving: ServingFacts | None = None,
) -> ModelFacts:
    """Read a model's facts.

    Args:
        model_id: what ``vllm serve`` is given.
        config: config.json as parsed.
        source: where the config came from.
        checkpoint_bytes: bytes of the weights as allocated or on disk, if known.
        weights_source: where ``checkpoint_bytes`` came from.
        hf_quant_config: ModelOpt's side file, if any.
        serving: verified flags of the model.

    Raises:
        UnknownFactError: a key that every decoder needs is missing.
        InfeasibleError: transformers refuses a value.
        InputError: a value is none that can be read.
        NotModelledError: the architecture caches in a way that is not modelled.
    """
    with reading(model_id):
        return _read(
            model_id,
            config,
            source=source,
            checkpoint_bytes=checkpoint_bytes,
            weights_source=weights_source,
            hf_quant_config=hf_quant_config,
            serving=serving,
        )


def _read(
    model_id: str,
    config: dict[str, Any],
    *,
    source: Source,
    checkpoint_bytes: int | None,
    weights_source: Source | None,
    hf_quant_config: dict[str, Any] | None,
    serving: ServingFacts | None,
) -> ModelFacts:
    name = str((config.get("architectures") or ["?"])[0])
    config = served_part(config)
    text, text_key = text_part(config)
    for part in (config, text):
        check_types(part)
    window_needed = not takes_null(str(text.get("model_type")), "sliding_window")
    architecture, runner, convert = find_adapted(text_class(name, text), with_defaults(text))
    text = usual_keys(architecture, with_defaults(text))
    recurrent_only = architecture is not None and architecture.layers.kinds == "recurrent"
    if recurrent_only:
        text = {**_WITHOUT_ATTENTION, **text}
    missing = [k for k in _REQUIRED if text.get(k) is None]
    if missing:
        raise UnknownFactError(
            f"config.json of {model_id} ({name}) has no {', '.join(missing)}",
            where=str(source),
            fix="is this a decoder language model? Diffusion, speech and encoder models are not "
            "planned",
        )
    if not 0 < int(text["num_hidden_layers"]) <= _LAYERS:
        raise ValueError(f"num_hidden_layers {text['num_hidden_layers']}")
    for key in ("max_position_embeddings", *(() if recurrent_only else ("num_attention_heads",))):
        if int(text[key]) < 1:
            raise ValueError(f"{key} {text[key]}")
    head_dim = _head_dim(architecture, text)
    specs, assumptions = kv_cache_layers(name, architecture, text, head_dim)
    if checkpoint_bytes is not None and _stored_dtype(config, text) == "float32":
        checkpoint_bytes = -(-checkpoint_bytes // 2)  # loaded in 16 bits
    bidirectional = architecture is not None and not _causal(architecture, config, text)
    beside = buffers(architecture, text, head_dim, specs)
    if bidirectional:
        specs = ((),) * len(specs)
    dtype, dtype_notes = _dtype(config, text)
    quantization, quant_notes = _quantization(config, hf_quant_config, checkpoint_bytes)
    quantized = quantization_config(config, hf_quant_config)
    components, weight_notes = model_weights(
        architecture,
        config,
        text,
        head_dim,
        quantization=quantization,
        quantization_config=quantized,
        checkpoint_bytes=checkpoint_bytes,
    )
    components += beside + expert_maps(components)
    notes = (*assumptions, *dtype_notes, *quant_notes, *weight_notes)
    if checkpoint_bytes is None:
        weights_source = Source(SourceKind.ASSUMED, "weights-from-config")
        notes += (
            Assumption(
                id="weights-from-config",
                text="weight bytes are computed from config.json; no safetensors header was read",
            ),
        )
    moe = architecture.moe if architecture else None
    return ModelFacts(
        model_id=model_id,
        architecture=name,
        num_hidden_layers=int(text["num_hidden_layers"]),
        hidden_size=int(text["hidden_size"]),
        intermediate_size=_widest(text.get("intermediate_size") or 4 * text["hidden_size"]),
        num_attention_heads=int(text["num_attention_heads"]),
        num_key_value_heads=int(text.get("num_key_value_heads") or text["num_attention_heads"]),
        head_dim=head_dim,
        vocab_size=int(text["vocab_size"]),
        max_position_embeddings=int(text["max_position_embeddings"]),
        dtype=dtype,
        kv_cache=specs,
        weights=WeightFacts(
            components=components,
            checkpoint_bytes=checkpoint_bytes,
            source=weights_source or source,
        ),
        source=source,
        rope=_rope(name, text),
        quantization=quantization,
        num_experts=int(text.get(moe.experts) or 0) if moe else 0,
        num_experts_per_tok=int(
            text.get("num_experts_per_tok") or text.get("experts_per_token") or 0
        ),
        moe_intermediate_size=int(text.get(moe.intermediate) or 0) if moe else 0,
        uses_mla=architecture is not None
        and (architecture.layers.pattern == "mla" or architecture.layers.latent),
        attention_sinks=architecture is not None and architecture.attention_sinks,
        block_outermost=architecture is not None and architecture.block_outermost,
        prefix_lm=_prefix_lm(architecture, text) or config.get("model_type") == "paligemma",
        item_tokens=architecture.item_tokens if architecture else 0,
        float16=architecture is None or architecture.float16,
        kv_sharing=architecture is not None
        and bool(text.get(architecture.layers.shared_key or "")),
        mtp=mtp_facts(
            name,
            architecture,
            text,
            head_dim,
            quantization=quantization,
            quantization_config=quantized,
        ),
        modalities=_modalities(config),
        text_config_key=text_key,
        runner=runner,
        convert=convert,
        generates=architecture is None or architecture.head is Head.LM,
        pooling_type=architecture.pooling if architecture else "LAST",
        bidirectional=bidirectional,
        num_labels=labels(config),
        stored_float32=_stored_dtype(config, text) == "float32",
        pipeline=architecture is None or architecture.pipeline,
        window_needed=window_needed,
        encoder_tokens=int(text.get("max_source_positions") or 0)
        if architecture is not None and architecture.layers.pattern == "encoder_decoder"
        else 0,
        needs_remote_code=architecture is None and bool(config.get("auto_map")),
        brings_code=bool(config.get("auto_map")),
        serving=serving or ServingFacts(),
        assumptions=notes,
    )


def _causal(architecture: Architecture, config: dict[str, Any], text: dict[str, Any]) -> bool:
    if isinstance(architecture.causal, bool):
        return architecture.causal
    return text.get(architecture.causal, config.get(architecture.causal)) is not False


def _widest(sizes: Any) -> int:
    """One size for all layers, or the largest of a list."""
    return int(max(sizes) if isinstance(sizes, list) else sizes)


def _prefix_lm(architecture: Architecture | None, text: dict[str, Any]) -> bool:
    if architecture is None or isinstance(architecture.prefix_lm, bool):
        return architecture is not None and bool(architecture.prefix_lm)
    return text.get(architecture.prefix_lm) == "vision"


def _modalities(config: dict[str, Any]) -> tuple[str, ...]:
    present = [key for key, value in config.items() if value not in (None, False, {})]
    return tuple(
        name
        for name, beginnings in _MODALITY_KEYS.items()
        if any(key.startswith(beginnings) for key in present)
    )


def _head_dim(architecture: Architecture | None, text: dict[str, Any]) -> int:
    if architecture is not None and architecture.layers.pattern == "mla":
        return int(text["qk_nope_head_dim"]) + int(text["qk_rope_head_dim"])
    if text.get("head_dim") and not (architecture and architecture.derived_head_dim):
        return int(text["head_dim"])
    heads = int(text["num_attention_heads"])
    return int(text["hidden_size"]) // heads if heads else 0


def _dtype(config: dict[str, Any], text: dict[str, Any]) -> tuple[str, tuple[Assumption, ...]]:
    name = _stored_dtype(config, text)
    if name:
        # --dtype auto loads FP32 checkpoints in 16 bits (vllm/config/model.py#_get_and_verify)
        return ("bfloat16" if name == "float32" else name), ()
    note = Assumption(id="dtype-bfloat16", text="config.json names no dtype; taken for bfloat16")
    return "bfloat16", (note,)


def _stored_dtype(config: dict[str, Any], text: dict[str, Any]) -> str:
    for part in (config, text):
        value = part.get("dtype") or part.get("torch_dtype")
        if value:
            return str(value).removeprefix("torch.")
    return ""


def _quantization(
    config: dict[str, Any], hf_quant_config: dict[str, Any] | None, checkpoint_bytes: int | None
) -> tuple[QuantizationFacts | None, tuple[Assumption, ...]]:
    try:
        return quantization_facts(config, hf_quant_config), ()
    except NotModelledError as error:
        if checkpoint_bytes is None:
            raise
        raw = config.get("quantization_config") or {
            "quant_method": "modelopt",
            **(hf_quant_config or {}).get("quantization", {}),
        }
        note = Assumption(
            id="quantization-not-modelled",
            text=f"{error.what}; the checkpoint's size on disk is taken for its size in memory",
            lowers_to=Confidence.LOW,
        )
        facts = QuantizationFacts(
            method=str(raw.get("quant_method", "unknown")),
            bits=16,
            kv_cache_dtype=declared_cache_dtype(raw),
        )
        return facts, (note,)


def _rope(architecture: str, text: dict[str, Any]) -> RopeFacts:
    raw = text.get("rope_parameters") or text.get("rope_scaling") or {}
    nested = [v for v in raw.values() if isinstance(v, dict)]
    # One entry per layer type (Gemma 3, OLMo 3): none of them stretches the length. Gemma 3's
    # positions are the stretched ones, however its factor is written
    # (vllm/config/model.py#_get_and_verify_max_len).
    if nested or architecture.startswith("Gemma3"):
        return RopeFacts(rope_type="per-layer-type", theta=text.get("rope_theta"))
    return rope_facts(raw, text)
