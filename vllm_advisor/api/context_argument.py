"""``--max-model-len``: what is asked for, against what the model reads at most."""

from __future__ import annotations

from typing import Any

from vllm_advisor.api.arguments import tokens
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.sizing.context_length import default_max_model_len, derived_max_model_len
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts

_AUTO = ("auto", "-1", -1)
_CHUNKED = KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION


def context_length(
    model: ModelFacts, args: dict[str, Any], *, allow_long: bool
) -> tuple[int, bool]:
    """Tokens of a request at most, and whether vLLM is to fit them to its memory itself.

    A model without attention has no positions, and so no limit. Source:
    vllm/config/model.py#_get_and_verify_max_len.

    Args:
        model: the model, with what ``--hf-overrides`` changes.
        args: engine arguments by vLLM's dest names.
        allow_long: VLLM_ALLOW_LONG_MAX_MODEL_LEN is set.

    Raises:
        InputError: it is no length.
        InfeasibleError: vLLM refuses it.
    """
    value = args.get("max_model_len")
    derived = derived_max_model_len(model)
    windows = [s.window for s in model.cache_specs if s.window and s.kind is not _CHUNKED]
    if args.get("disable_sliding_window") and model.window_needed:
        raise InfeasibleError(
            f"vLLM sets sliding_window to null, which the config class of {model.architecture} "
            "refuses",
            where="--disable-sliding-window",
            fix="leave it out",
        )
    if args.get("disable_sliding_window") and windows:
        # Without its window a model reads no further than one.
        derived = min(derived, *windows)
        if value is None:
            return derived, False
    if value is None:
        return default_max_model_len(model), False
    if value in _AUTO:
        if not model.num_attention_heads:
            raise InfeasibleError(
                "max_model_len must be a positive integer for a model without attention",
                where="--max-model-len",
                fix="--max-model-len 2048, or what the application needs",
            )
        return min(derived, default_max_model_len(model)), True
    length = tokens(args, "max_model_len", 0)
    if length < 1:
        raise InputError(f"max_model_len {value} is no length", where="--max-model-len")
    if length > derived and not allow_long and model.num_attention_heads:
        raise InfeasibleError(
            f"User-specified max_model_len ({length}) is greater than the derived max_model_len "
            f"({derived}) of {model.model_id}.",
            where="--max-model-len",
            fix=f"--max-model-len {derived} or less, or YaRN where the model documents it, with "
            "max_position_embeddings in --hf-overrides",
        )
    return length, False
