"""The text of one flag's value -> the value vLLM's parser makes of it, or why it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from vllm_advisor.types.engine import Flag, Parsing
from vllm_advisor.units import parse_tokens


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")


# What the parser's table of flags does not show (vllm:0.33.0:vllm/engine/arg_utils.py).
_OWN_READERS: dict[str, Callable[[str], Any]] = {
    "device_ids": lambda text: [
        int(part) if part.isdecimal() else part for part in (p.strip() for p in text.split(","))
    ],
    "linear_backend": _folded,
    "moe_backend": _folded,
    "sparse_indexer_topk_backend": _folded,
}
_OBJECT = re.compile(r"\s*\{.*\}\s*", re.DOTALL)
_LEVELS = frozenset("0123")
_QUOTED_OBJECT = re.compile(r"""\s*(['"])\s*\{.*\}\s*\1\s*""", re.DOTALL)
_BARE_NUMBER = re.compile(r"\b\d+(?:\.\d+)?[kKmMgG]\b")
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


def read_value(flag: Flag, text: str, *, suffixes: bool = True) -> Any:
    """Convert one value.

    Args:
        flag: the flag it follows.
        text: the value.
        suffixes: the version takes 80m and 4K for numbers inside of JSON.

    Raises:
        ValueRefusedError: the text is no value of the flag's kind or none of its choices.
    """
    if flag.kind == "bool":
        return _switch(flag, text)
    own = _OWN_READERS.get(flag.dest)
    if text in ("", "None") and flag.default is None and own is None:
        return None  # optional_type
    if flag.kind == "json_or_level" and text in _LEVELS:
        return {"level": int(text)}
    if flag.kind in ("pairs", "json_or_pairs") and not (
        flag.takes_object and _OBJECT.fullmatch(text)
    ):
        return _pairs(flag, text)
    if flag.takes_object:
        return read_json(flag, text, suffixes=suffixes)
    if flag.kind in ("tokens", "tokens_or_auto"):
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


def read_json(flag: Flag, text: str, *, suffixes: bool = True) -> Any:
    """Read a JSON value; numbers may have the suffixes of token counts where vLLM takes them.

    Raises:
        ValueRefusedError: it is no JSON, no object where one is needed, or has an unknown key.
    """
    name = flag.spellings[0]
    if flag.kind == "json_or_text" and not _OBJECT.fullmatch(text):
        if flag.dest != "hf_overrides":
            return text
        raise ValueRefusedError(
            "json-embedded-quotes" if _QUOTED_OBJECT.fullmatch(text) else "json-invalid",
            f"{name} gets the text {text!r} and overrides nothing: only {{...}} is read as JSON",
            "write the object itself, in one pair of single quotes in a shell, in none in YAML",
            value=text,
        )
    try:
        value = json.loads(_expand_numbers(text) if suffixes else text)
    except json.JSONDecodeError as error:
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


def read_dotted(text: str, parsing: Parsing) -> Any:
    """Value of ``--flag.key VALUE``: JSON, a token count, or text."""
    if parsing.dotted_keys == "text":
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if not parsing.number_suffixes or not _BARE_NUMBER.fullmatch(text.strip()):
            return text
    try:
        return parse_tokens(text)
    except ValueError:
        return text


def _switch(flag: Flag, text: str) -> bool:
    """``--flag true``, where a version's boolean flag takes a word."""
    if text.lower() not in ("true", "false"):
        raise ValueRefusedError(
            "invalid-choice", f"{flag.spellings[0]} takes no {text!r}", "write true or false"
        )
    return text.lower() == "true"


def _pairs(flag: Flag, text: str) -> dict[str, int]:
    """``image=2,video=1``, as vLLM read it up to 0.9."""
    found = {}
    for item in text.split(","):
        key, equals, number = (part.strip() for part in item.lower().partition("="))
        if not equals or not number.isdecimal():
            raise ValueRefusedError(
                "invalid-value",
                f"{flag.spellings[0]} takes no {text!r}",
                f"write {flag.spellings[0]} KEY=NUMBER, with commas between several",
            )
        found[key] = int(number)
    return found


def _tokens(flag: Flag, text: str) -> int:
    stripped = text.strip()
    if flag.kind == "tokens_or_auto" and stripped.lower() == "auto":
        return -1
    try:
        return parse_tokens(stripped) if _BARE_NUMBER.fullmatch(stripped) else int(stripped)
    except ValueError as error:
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


def _json_refused(name: str, text: str, error: json.JSONDecodeError) -> ValueRefusedError:
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
