"""The text model's part of config.json, under the names that most families use."""

from __future__ import annotations

from typing import Any

from vllm_advisor.knowledge.architectures import Architecture

# Where multimodal families keep the text model (vllm/transformers_utils/config.py and the models'
# own config classes); the first that is there.
_PARTS = ("text_config", "llm_config", "language_config")
# vllm/transformers_utils/model_arch_config_convertor.py#derive_max_model_len_and_key
_LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


def served_part(config: dict[str, Any]) -> dict[str, Any]:
    """What vLLM serves of config.json: of models that also speak, the part that thinks."""
    thinker = config.get("thinker_config")
    return {**config, **thinker} if isinstance(thinker, dict) else config


def text_part(config: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The text model's part of config.json, and the key it stands under (``None``: no key)."""
    for key in _PARTS:
        if isinstance(config.get(key), dict):
            return config[key], key
    return config, None


def usual_keys(architecture: Architecture | None, text: dict[str, Any]) -> dict[str, Any]:
    """``text`` with what this family calls otherwise, or leaves out, under its usual name.

    Args:
        architecture: the layout, or ``None`` when the class is not known.
        text: the text model's part of config.json.
    """
    if architecture is None:
        return _with_length(text)
    out = {**architecture.defaults, **{k: v for k, v in text.items() if v is not None}}
    for usual, own in architecture.keys.items():
        value = _inside(text, own)
        if value is not None:
            out[usual] = value
    if architecture.mlp_ratio is not None and not out.get("intermediate_size"):
        out["intermediate_size"] = architecture.mlp_ratio * int(out["hidden_size"])
    named = out.get("layers_block_type") or out.get("hybrid_override_pattern")
    if not out.get("num_hidden_layers") and named:
        out["num_hidden_layers"] = len(named)  # Nemotron-H's later configs name each layer
    return _with_length(out)


def _inside(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config.get(key) if isinstance(config, dict) else None
    return config


def _with_length(text: dict[str, Any]) -> dict[str, Any]:
    """The shortest of all keys that name a length; Cohere's ``model_max_length`` wins."""
    lengths = [int(text[key]) for key in _LENGTHS if text.get(key)]
    length = text.get("model_max_length") or (min(lengths) if lengths else None)
    return text if length is None else {**text, "max_position_embeddings": int(length)}
