"""What ``--hf-overrides`` makes of a model, as far as its context goes.

vLLM reads the context from the text model's config. Where that is nested (``text_config``), keys
outside of it do not reach it; inside, objects are merged key by key, while on the top level they
replace what was there (vllm:0.33.0:vllm/config/model.py#_apply_dict_overrides).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.types.model import ModelFacts, WeightFacts
from vllm_advisor.types.rope import ROPE_TABLE, RopeFacts

ROPE_KEYS = ("rope_parameters", "rope_scaling")


def overridden_model(model: ModelFacts, overrides: dict[str, Any]) -> ModelFacts:
    """The model with the context that vLLM reads from its config and the overrides."""
    text = text_overrides(model, overrides)
    # Cohere's key wins over max_position_embeddings
    # (vllm/transformers_utils/model_arch_config_convertor.py#derive_max_model_len_and_key).
    length = _count(text.get("model_max_length")) or _count(text.get("max_position_embeddings"))
    raw = rope_override(model, overrides)
    seen = replace(
        model,
        max_position_embeddings=length or model.max_position_embeddings,
        rope=model.rope if raw is None else _rope(model, raw),
    )
    return replace(seen, weights=_weights(model, seen))


def with_tables(model: ModelFacts, overrides: dict[str, Any] | None) -> ModelFacts:
    """The model with RoPE tables as the overrides make them; its context stays as it was."""
    return replace(model, weights=overridden_model(model, overrides or {}).weights)


def _weights(before: ModelFacts, after: ModelFacts) -> WeightFacts:
    """Those with RoPE tables of another length, which vLLM builds from the same keys."""
    was = before.rope.table_rows(before.max_position_embeddings)
    now = after.rope.table_rows(after.max_position_embeddings)
    return replace(
        before.weights,
        components=tuple(
            replace(part, params=part.params // was * now, rows=part.rows // was * now)
            if part.name == ROPE_TABLE and now != was and part.rows % was == 0
            else part
            for part in before.weights.components
        ),
    )


def text_overrides(model: ModelFacts, overrides: dict[str, Any]) -> dict[str, Any]:
    """The keys that reach the text model."""
    if model.text_config_key is None:
        return overrides
    nested = overrides.get(model.text_config_key)
    return nested if isinstance(nested, dict) else {}


def rope_override(model: ModelFacts, overrides: dict[str, Any]) -> dict[str, Any] | None:
    """The RoPE parameters that reach the text model, if there are any."""
    text = text_overrides(model, overrides)
    return next((text[key] for key in ROPE_KEYS if isinstance(text.get(key), dict)), None)


def _rope(model: ModelFacts, raw: dict[str, Any]) -> RopeFacts:
    if model.rope.rope_type == "per-layer-type":
        return model.rope
    nested = model.text_config_key is not None
    before = model.rope if nested else RopeFacts()
    old_name = None if nested else raw.get("type")  # see CTX004
    return RopeFacts(
        rope_type=str(raw.get("rope_type") or old_name or before.rope_type),
        factor=_number(raw.get("factor")) or before.factor,
        original_max_position_embeddings=_count(raw.get("original_max_position_embeddings"))
        or before.original_max_position_embeddings,
        theta=_number(raw.get("rope_theta")) or before.theta,
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None
