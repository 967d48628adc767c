"""Engine arguments as given (text or numbers) to values, with an error that names the flag."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.parse.flag_values import ValueRefusedError, read_value
from vllm_advisor.types.engine import EngineFacts, Flag
from vllm_advisor.units import parse_bytes, parse_tokens


def check_names_and_choices(engine: EngineFacts, args: dict[str, Any]) -> None:
    """Refuse what the version's parser does not have.

    Raises:
        InputError: an unknown argument, or a value that is none of an argument's choices.
    """
    for name, value in args.items():
        if name not in engine.flags:
            close = get_close_matches(name, engine.flags, n=2)
            raise InputError(
                f"vLLM {engine.version} has no argument {name}",
                where=name,
                fix=f"did you mean {' or '.join(close)}?" if close else "see vllm serve --help=all",
            )
        flag = engine.flags[name]
        if flag.kind == "bool" and isinstance(value, str):
            raise InputError(f"{name} {value!r} is neither true nor false", where=flag.spellings[0])
        named = flag.kind == "str" and flag.choices and value is not None
        if named and value not in flag.choices:
            raise InputError(
                f"{name} {value!r} is none of {', '.join(flag.choices)}", where=flag.spellings[0]
            )


def read_words(engine: EngineFacts, words: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` words as engine arguments, each value read as vLLM's parser would.

    Tokens and bytes stay text: sizing takes more spellings of them than vLLM does.

    Raises:
        InputError: a word has no ``=``, or a value is none of its argument's kind.
    """
    args: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InputError(
                f"{word!r} is no NAME=VALUE",
                where="--set",
                fix="--set kv_cache_dtype=fp8, with vLLM's own names",
            )
        name = name.lstrip("-").replace("-", "_")
        flag = engine.flags.get(name)
        suffixes = engine.parsing.number_suffixes
        args[name] = text if flag is None else _read_word(flag, text, suffixes=suffixes)
    return args


def _read_word(flag: Flag, text: str, *, suffixes: bool) -> Any:
    if flag.kind == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    if flag.kind not in ("int", "float") and not flag.takes_object:
        return text
    try:
        if flag.nargs in ("*", "+"):
            return [
                read_value(flag, part, suffixes=suffixes) for part in text.replace(",", " ").split()
            ]
        return read_value(flag, text, suffixes=suffixes)
    except ValueRefusedError as refused:
        raise InputError(refused.message, where=flag.spellings[0], fix=refused.fix) from None


def integer(args: dict[str, Any], name: str, default: int) -> int:
    """A whole number above 0."""
    value = args.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
        flag = "--" + name.replace("_", "-")
        raise InputError(f"{name} {value!r} is no whole number above 0", where=flag)
    return int(value)


def optional_integer(args: dict[str, Any], name: str) -> int | None:
    """A whole number above 0, or ``None`` where it is not given."""
    return None if args.get(name) is None else integer(args, name, 1)


def tokens(args: dict[str, Any], name: str, default: int) -> int:
    """Tokens, with vLLM's suffixes (32k, 32K)."""
    value = args.get(name)
    if value is None:
        return default
    try:
        return parse_tokens(value)
    except ValueError as error:
        raise InputError(str(error), where="--" + name.replace("_", "-")) from None


def byte_count(args: dict[str, Any], name: str) -> int | None:
    """Bytes, with vLLM's suffixes, or ``None`` where it is not given."""
    value = args.get(name)
    if value is None:
        return None
    try:
        return parse_bytes(value)
    except ValueError as error:
        raise InputError(str(error), where="--" + name.replace("_", "-")) from None


def fraction(args: dict[str, Any], default: float) -> float:
    """``gpu_memory_utilization``: above 0, at most 1."""
    value = args.get("gpu_memory_utilization", default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number <= 1:
        raise InputError(
            f"gpu_memory_utilization {value} is not above 0 and at most 1",
            where="--gpu-memory-utilization",
            fix="a share such as 0.92",
        )
    return number
