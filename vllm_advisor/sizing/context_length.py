"""The longest context vLLM accepts for a model before it asks for an override."""

from __future__ import annotations

from vllm_advisor.types.model import ModelFacts

# Types whose factor vLLM does not multiply into max_position_embeddings: their configs already
# hold the stretched length (vllm/config/model.py#_get_and_verify_max_len).
_NOT_MULTIPLIED = frozenset(
    (
        "deepseek_llama_scaling",
        "deepseek_yarn",
        "default",
        "llama3",
        "longrope",
        "mrope",
        "per-layer-type",
        "su",
        "yarn",
    )
)


def derived_max_model_len(model: ModelFacts) -> int:
    """Largest ``--max-model-len`` vLLM accepts without VLLM_ALLOW_LONG_MAX_MODEL_LEN."""
    if model.rope.rope_type in _NOT_MULTIPLIED:
        return model.max_position_embeddings
    return int(model.max_position_embeddings * model.rope.factor)


def default_max_model_len(model: ModelFacts) -> int:
    """What vLLM takes when ``--max-model-len`` is not given: longrope falls back to the original.

    Source: vllm/config/model.py#_get_and_verify_max_len.
    """
    original = model.rope.original_max_position_embeddings
    if model.rope.rope_type in ("longrope", "su") and original:
        return original
    return derived_max_model_len(model)
