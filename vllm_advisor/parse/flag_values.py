"""The text of one flag's value -> the value vLLM's parser makes of it, or why it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from vllm_advisor.types.engine import Flag
from vllm_advisor.units import parse_tokens

# Facts of vllm:0.33.0:vllm/engine/arg_utils.py that the parser's table of flags does not show.
_AUTO_TOKENS = frozenset(("max_model_len",))  # human_readable_int_or_auto
_OBJECT_OR_TEXT = frozenset(  # union_dict_and_str: what is no {...} stays a string
    ("additional_config", "hf_overrides", "model_loader_extra_config", "pt_load_map_location")
)


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")


_OWN_READERS: dict[str, Callable[[str], Any]] = {
    "device_ids": lambda text: [
        int(part) if part.isdecimal() else part for part in (p.strip() for p in text.split(","))
    ],
    "linear_backend": _folded,
    "moe_backend": _folded,
    "sparse_indexer_topk_backend": _folded,
}
_QUOTED_OBJECT = re.compile(r"""\s*(['"])\s*\{.*\}\s*\1\s*""", re.DOTALL)
_BARE_NUMBER = re.compile(r"\b\d+(?:\.\d+)?[kKmMgG]\b")
_UNREADABLE = (ValueError, OverflowError, RecursionError)
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')


class ValueRefusedError(Exception):
    """vLLM would refuse the value, or take it for something else than its writer means.

    Args:
        code: kind of the mistake, as :class:`~vllm_advisor.parse.serve_command.Problem` has it.
        message: what is wrong.
        fix: what to write instead.
        value: what vLLM makes of it, when it does take it.
    """

    def __init__(self, code: str, message: str, fix: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.value = value


def read_value(flag: Flag, text: str) -> Any:
    """Convert one value.

    Raises:
        ValueRefusedError: the text is no value of the flag's kind or none of its choices.
    """
    own = _OWN_READERS.get(flag.dest)
    if text in ("", "None") and flag.default is None and own is None:
        return None  # optional_type
    if flag.kind == "json":
        return read_json(flag, text)
    if flag.kind == "tokens":
        value: Any = _tokens(flag, text)
    elif flag.kind in ("int", "float"):
        value = _number(flag, text)
    else:
        value = own(text) if own else text
    if flag.choices and str(value) not in flag.choices:
        raise ValueRefusedError(
            "invalid-choice",
            f"{flag.spellings[0]} takes no {text!r}",
            f"choose from {', '.join(flag.choices)}",
        )
    return value


def read_json(flag: Flag, text: str) -> Any:
    """Read a JSON value; numbers may have the suffixes of token counts, as in vLLM.

    Raises:
        ValueRefusedError: it is no JSON, no object where one is needed, or has an unknown key.
    """
    name = flag.spellings[0]
    if flag.dest in _OBJECT_OR_TEXT and not re.fullmatch(r"\s*\{.*\}\s*", text, re.DOTALL):
        if flag.dest != "hf_overrides":
            return text
        raise ValueRefusedError(
            "json-embedded-quotes" if _QUOTED_OBJECT.fullmatch(text) else "json-invalid",
            f"{name} gets the text {text!r} and overrides nothing: only {{...}} is read as JSON",
            "write the object itself, in one pair of single quotes in a shell, in none in YAML",
            value=text,
        )
    try:
        value = json.loads(_expand_numbers(text))
    except _UNREADABLE as error:  # also 1.5K, numbers and nesting without an end
        raise _json_refused(name, text, error) from error
    wants_list = isinstance(flag.default, list)
    if not isinstance(value, list if wants_list else dict):
        raise ValueRefusedError(
            "json-invalid", f"{name} takes a JSON {'list' if wants_list else 'object'}, not {text}"
        )
    check_keys(flag, value)
    return value


def check_keys(flag: Flag, value: Any) -> None:
    """Refuse keys that vLLM's configuration class does not have.

    Raises:
        ValueRefusedError: a key is unknown.
    """
    unknown = [k for k in value if k not in flag.choices] if isinstance(value, dict) else []
    if flag.choices and unknown:
        raise ValueRefusedError(
            "json-unknown-key",
            f"{flag.spellings[0]} has no {', '.join(map(repr, unknown))}",
            f"keys it takes: {', '.join(flag.choices)}",
            value=value,
        )


def read_dotted(text: str) -> Any:
    """Value of ``--flag.key VALUE``: JSON, a token count, or text."""
    try:
        return json.loads(text)
    except _UNREADABLE:
        try:
            return parse_tokens(text) if _BARE_NUMBER.fullmatch(text.strip()) else text
        except _UNREADABLE:
            return text


def _tokens(flag: Flag, text: str) -> int:
    stripped = text.strip()
    if flag.dest in _AUTO_TOKENS and stripped.lower() == "auto":
        return -1
    try:
        return parse_tokens(stripped) if _BARE_NUMBER.fullmatch(stripped) else int(stripped)
    except _UNREADABLE as error:
        raise ValueRefusedError(
            "invalid-value",
            f"{flag.spellings[0]} takes no {text!r}",
            "write a whole number, 32k (32,000) or 32K (32,768)",
        ) from error


def _number(flag: Flag, text: str) -> int | float:
    try:
        return int(text) if flag.kind == "int" else float(text)
    except ValueError as error:
        if flag.nargs in ("+", "*") and "," in text:
            raise ValueRefusedError(
                "list-as-comma-string",
                f"{flag.spellings[0]} takes its numbers as words of their own, not {text!r}",
                f"{flag.spellings[0]} {' '.join(part.strip() for part in text.split(','))}",
            ) from error
        number = "a whole number" if flag.kind == "int" else "a number"
        raise ValueRefusedError(
            "invalid-value", f"{flag.spellings[0]} takes {number}, not {text!r}"
        ) from error


def _expand_numbers(text: str) -> str:
    parts = _STRING.split(text)
    for index in range(0, len(parts), 2):  # outside of strings
        parts[index] = _BARE_NUMBER.sub(lambda m: str(parse_tokens(m[0])), parts[index])
    return "".join(parts)


def _json_refused(name: str, text: str, error: Exception) -> ValueRefusedError:
    """Name the usual ways in which JSON breaks on its way to the command line."""
    if _QUOTED_OBJECT.fullmatch(text):
        return ValueRefusedError(
            "json-embedded-quotes",
            f"{name}: the quotes around {text} are part of the value",
            "one pair of single quotes in a shell, none in YAML",
        )
    if text.lstrip().startswith("{{"):
        return ValueRefusedError(
            "json-double-braces",
            f"{name}: {text} has the doubled braces of a template language",
            "write single braces",
        )
    if "'" in text and '"' not in text:
        return ValueRefusedError(
            "json-invalid", f"{name}: {text} is no JSON", "JSON strings take double quotes"
        )
    if "..." in text:
        return ValueRefusedError("json-invalid", f"{name}: {text} leaves something out")
    if '"' not in text and ("{" in text or ":" in text):
        return ValueRefusedError(
            "json-unquoted",
            f"{name}: {text} is no JSON; a shell has removed its double quotes",
            "put single quotes around the JSON",
        )
    return ValueRefusedError("json-invalid", f"{name}: {text} is no JSON ({error})")
