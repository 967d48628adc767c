"""What ``--hf-overrides`` makes of a model's context: no rule, but what the CTX rules look at.

vLLM reads the context from the text model's config. Where that is nested (``text_config``), keys
outside of it do not reach it; inside, objects are merged key by key, while on the top level they
replace what was there (vllm:0.33.0:vllm/config/model.py#_apply_dict_overrides).
"""

from __future__ import annotations

import json
from typing import Any

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.context_length import default_max_model_len, derived_max_model_len
from vllm_advisor.sizing.overrides import (
    ROPE_KEYS,
    overridden_model,
    rope_override,
    text_overrides,
)
from vllm_advisor.types.model import ModelFacts

_CONTEXT_KEYS = ("max_position_embeddings", "model_max_length", *ROPE_KEYS)
# vLLM takes max_position_embeddings to be stretched already for these, and does not multiply.
_NOT_MULTIPLIED = ("yarn", "deepseek_yarn", "longrope", "su", "llama3")
_YARN = ("yarn", "deepseek_yarn")
_ALLOWED = ("1", "true")


def asked_length(subject: Subject) -> int | None:
    """``--max-model-len``, if it is given as a number of tokens (``auto`` is none)."""
    asked = subject.args.get("max_model_len")
    return asked if isinstance(asked, int) and asked > 0 else None


def context_length(subject: Subject) -> int:
    """The context the server has: as given, else the model's own.

    Raises:
        UnknownFactError: it is not given, and the model is not known.
    """
    asked = asked_length(subject)
    if asked is not None:
        return asked
    if subject.model is None:
        reason = subject.why_missing("model")
        raise UnknownFactError(f"the context length is not known: {reason}")
    return default_max_model_len(overridden_model(subject.model, given_overrides(subject)))


def allows_any_length(subject: Subject) -> bool:
    """Whether the command switches vLLM's check of the length off."""
    value = subject.command.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0")
    return value.strip().lower() in _ALLOWED


def given_overrides(subject: Subject) -> dict[str, Any]:
    """The object of ``--hf-overrides``; empty if there is none or it was given as a text."""
    value = subject.args.get("hf_overrides")
    return value if isinstance(value, dict) else {}


def misplaced(model: ModelFacts, overrides: dict[str, Any]) -> str:
    """Why context keys of the overrides do not reach the text model; empty if all do."""
    key, nested = model.text_config_key, overrides.get("text_config")
    if key is None and isinstance(nested, dict) and any(k in nested for k in _CONTEXT_KEYS):
        return "the model has no text_config, its context keys stand on the top level"
    if key is not None and any(k in overrides for k in _CONTEXT_KEYS):
        return f"outside of {key} the text model does not read it"
    return ""


def rope_is_stretched(model: ModelFacts, overrides: dict[str, Any]) -> bool:
    """Whether the overrides stretch RoPE in a way that leaves vLLM's limit as it is."""
    stretched = overridden_model(model, overrides).rope
    given = rope_override(model, overrides) is not None
    return given and stretched.rope_type in _NOT_MULTIPLIED and stretched.factor > 1


def rope_positions(model: ModelFacts) -> int:
    """Positions the table of rotary embeddings has; a request beyond them stops the engine.

    YaRN: factor x original_max_position_embeddings (vllm:0.33.0:vllm/model_executor/layers/
    rotary_embedding/yarn_scaling_rope.py); otherwise the derived limit.
    """
    if model.rope.rope_type in _YARN:
        original = model.rope.original_max_position_embeddings or model.max_position_embeddings
        return int(model.rope.factor * original)
    return derived_max_model_len(model)


def with_length(model: ModelFacts, overrides: dict[str, Any], length: int) -> str:
    """The overrides with a length added at the place where vLLM reads it, as a shell word."""
    added = {**text_overrides(model, overrides), "max_position_embeddings": length}
    if model.text_config_key is not None:
        added = {**overrides, model.text_config_key: added}
    return f"--hf-overrides '{json.dumps(added)}'"


def documented_stretch(model: ModelFacts, length: int) -> str | None:
    """The override that reaches ``length``, where the publisher documents one."""
    original, limit = model.serving.yarn_original, model.serving.yarn_factor
    if not original or not limit or length > original * limit:
        return None
    rope: dict[str, Any] = {
        "rope_type": "yarn",
        "factor": limit,
        "original_max_position_embeddings": original,
    }
    if model.rope.theta is not None:
        rope["rope_theta"] = model.rope.theta
    overrides: dict[str, Any] = {"rope_parameters": rope}
    if model.text_config_key is not None:
        overrides = {model.text_config_key: overrides}
    return with_length(model, overrides, int(original * limit))
