"""``--speculative-config`` and its short flags as vLLM reads them, with what it refuses of them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError

WHERE = "--speculative-config"
DRAFT_MODEL = "draft_model"
_FLAGS = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
_OLD_MTP = "_mtp"  # deepseek_mtp and others: today's mtp
# What a draft's name says of its method where none is given, in vLLM's order.
_NAMES = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
# Refused unless they have a value that changes nothing of the figures.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "attention_backend": (None, "auto"),
    "draft_lm_head_quantization": (None,),
    "enable_adaptive_verification": (None, False),
    "kv_cache_dtype": (None,),
    "max_model_len": (None,),
    "num_speculative_tokens_per_batch_size": (None,),
    "parallel_drafting": (None, False),
    "quantization": (None,),
    "use_heterogeneous_vocab": (None, False),
}
_HARMLESS = frozenset(
    {
        "code_revision",
        "disable_eagle_block_drop",
        "disable_lookahead_block_hashes",
        "disable_padded_drafter_batch",
        "draft_load_config",
        "draft_sample_method",
        "draft_tensor_parallel_size",
        "dspark_draft_topk",
        "enforce_eager",
        "fly_entropy_threshold",
        "fly_entropy_top_k",
        "fly_window_size",
        "index_share_for_mtp_iteration",
        "method",
        "model",
        "moe_backend",
        "num_speculative_tokens",
        "prompt_lookup_max",
        "prompt_lookup_min",
        "rejection_sample_method",
        "revision",
        "suffix_decoding_max_cached_requests",
        "suffix_decoding_max_spec_factor",
        "suffix_decoding_max_tree_depth",
        "suffix_decoding_min_token_prob",
        "synthetic_acceptance_length",
        "synthetic_acceptance_rates",
        "use_local_argmax_reduction",
        "xpress_topc",
    }
)


def speculative_args(args: dict[str, Any]) -> dict[str, Any] | None:
    """The keys of SpeculativeConfig that are given, ``None`` without speculative decoding.

    Args:
        args: engine arguments by vLLM's dest names.

    Raises:
        InputError: no mapping, or a key that SpeculativeConfig does not have.
        InfeasibleError: a key that is given twice, or that vLLM refuses.
        NotModelledError: a key whose memory is not computed.
    """
    raw = args.get("speculative_config")
    if isinstance(raw, str):  # as it is typed behind the flag
        with suppress(ValueError):
            raw = json.loads(raw)
    if raw is not None and not isinstance(raw, dict):
        raise InputError(
            f"speculative_config is {type(raw).__name__}, not a mapping",
            where=WHERE,
            fix="""JSON in single quotes: '{"method": "ngram", "num_speculative_tokens": 3}'""",
        )
    given = {str(key).replace("-", "_"): value for key, value in (raw or {}).items()}
    for flag, key in _FLAGS.items():
        if args.get(flag) is None:
            continue
        if key in given:
            raise InfeasibleError(
                f"--{flag.replace('_', '-')} and --speculative-config['{key}'] are mutually "
                "exclusive",
                where=WHERE,
            )
        given[key] = args[flag]
    if raw is None and not given:
        return None
    if given.get("tensor_parallel_size") is not None:
        raise InfeasibleError(
            "'tensor_parallel_size' is not a valid argument in the speculative_config. Please pass "
            "'draft_tensor_parallel_size' instead.",
            where=WHERE,
        )
    unknown = sorted(set(given) - _HARMLESS - set(_REFUSED) - {"tensor_parallel_size"})
    if unknown:
        raise InputError(f"speculative_config has no {', '.join(unknown)}", where=WHERE)
    for key, harmless in _REFUSED.items():
        if key in given and given[key] not in harmless:
            raise NotModelledError(
                f"{key} of speculative_config changes memory in a way that is not computed yet",
                where=WHERE,
                fix=f"leave {key} out and allow for it",
            )
    return given


def drafting_method(given: dict[str, Any]) -> str:
    """vLLM's method, by its name, by the model's, or a draft model that is independent."""
    named, model = given.get("method"), str(given.get("model") or "")
    if named is not None:
        return "mtp" if str(named).endswith(_OLD_MTP) else str(named)
    if model in ("ngram", "[ngram]"):
        return "ngram"
    parts = model.split(".")
    if "/" not in model and len(parts) > 1 and all(part.isidentifier() for part in parts):
        return "custom_class"
    return next((m for part, m in _NAMES.items() if part in model.lower()), DRAFT_MODEL)


def whole_number(given: dict[str, Any], key: str) -> int | None:
    """A whole number above 0, or ``None`` where the key is not given.

    Raises:
        InputError: it is none.
    """
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
        raise InputError(f"{key} {value!r} is no whole number above 0", where=WHERE)
    return int(value)


def check_lookup(given: dict[str, Any]) -> None:
    """Raise InfeasibleError where the n-grams to look up have no length."""
    least, most = whole_number(given, "prompt_lookup_min"), whole_number(given, "prompt_lookup_max")
    if least is not None and most is not None and least > most:
        raise InfeasibleError(
            f"prompt_lookup_min={least} must be <= prompt_lookup_max={most}", where=WHERE
        )


def check_draft_tp(given: dict[str, Any], tp: int) -> None:
    """Raise InfeasibleError for a draft size that is neither 1 nor the target's.

    The draft is divided by the target's size all the same: both share their process groups.
    """
    draft = whole_number(given, "draft_tensor_parallel_size")
    if draft not in (None, 1, tp):
        raise InfeasibleError(
            f"speculative_draft_tensor_parallel_size={draft} cannot be other value than 1 or "
            "target model tensor_parallel_size",
            where=WHERE,
            fix=f"draft_tensor_parallel_size: {tp}, or leave it out",
        )
