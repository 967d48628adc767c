"""``--hf-overrides.rope_parameters.factor 4``: JSON objects given key by key.

vLLM takes such words out of the command first and appends one object per flag at its end, so they
replace an object given as JSON (vllm:0.33.0:vllm/utils/argparse_utils.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vllm_advisor.parse.flag_values import ValueRefusedError, check_keys, read_dotted
from vllm_advisor.parse.remarks import Note, Problem, Unresolved
from vllm_advisor.parse.shell import Token
from vllm_advisor.types.engine import EngineArg, Flag, Parsing


@dataclass(slots=True)
class DottedKeys:
    """The objects found, by dest, and what is left of the command."""

    objects: dict[str, EngineArg] = field(default_factory=dict)
    rest: list[Token] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)


def take_dotted_keys(
    tokens: list[Token], flags: Mapping[str, Flag], parsing: Parsing
) -> DottedKeys:
    """Take the dotted words and their values out of a command.

    Args:
        tokens: the words after the command.
        flags: the version's flags by option string.
        parsing: what the version does with such words.
    """
    if parsing.dotted_keys == "none":
        return DottedKeys(rest=tokens)
    found = DottedKeys()
    words = iter(tokens)
    for word in words:
        key, equals, text = word.text.partition("=")
        name, *path = key.split(".")
        flag = flags.get(name)
        if not path or flag is None:
            found.rest.append(word)
            continue
        value = word._replace(text=text) if equals else next(words, None)
        if not flag.takes_object or value is None:
            code = "missing-value" if flag.takes_object else "dotted-key"
            says = f"{key} has no value" if flag.takes_object else f"{name} takes no keys"
            found.problems.append(Problem(says, word.location, code, dest=flag.dest))
        elif value.unresolved:
            found.unresolved.append(Unresolved(flag.dest, value.text, value.location))
        else:
            argument = found.objects.setdefault(
                flag.dest, EngineArg(dest=flag.dest, value={}, origin=word.location)
            )
            keys, item = _item(path, value.text, parsing)
            _put(argument.value, keys, item, word, found)
    for dest, argument in found.objects.items():
        flag = next(flag for flag in flags.values() if flag.dest == dest)
        try:
            check_keys(flag, argument.value)
        except ValueRefusedError as refused:
            where = argument.origin
            found.problems.append(
                Problem(refused.message, where, refused.code, refused.fix, dest)  # type: ignore[arg-type]
            )
    return found


def _item(path: list[str], text: str, parsing: Parsing) -> tuple[list[str], Any]:
    """Keys and value of one word; ``key+`` has the items of a comma list."""
    if parsing.dotted_keys == "json" and path[-1].endswith("+"):
        return [*path[:-1], path[-1][:-1]], text.split(",")
    return path, read_dotted(text, parsing)


def _put(
    target: dict[str, Any], path: list[str], value: Any, word: Token, found: DottedKeys
) -> None:
    """Set one key; a list is added to the one that is there."""
    last = path[-1]
    for key in path[:-1]:
        if not isinstance(target.get(key), dict):
            target[key] = {}
        target = target[key]
    if isinstance(value, list) and isinstance(target.get(last), list):
        target[last] = target[last] + value
        return
    if last in target:
        name = word.text.partition("=")[0]
        found.notes.append(Note(f"{name} is given twice; the last one counts", word.location))
    target[last] = value
