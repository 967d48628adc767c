"""Words as vLLM hands them to argparse: underscores of names become dashes, ``-O3`` another flag.

See ``FlexibleArgumentParser.parse_args`` of the version: what differs is in
:class:`~vllm_advisor.types.engine.Parsing`.
"""

from __future__ import annotations

import re

from vllm_advisor.parse.shell import Token
from vllm_advisor.types.engine import Parsing

_NAME = re.compile(r"--[^=.]*")
_LEVELS = frozenset("0123")
_O = "-O"


def as_argparse_gets(tokens: list[Token], parsing: Parsing) -> list[Token]:
    """The words after vLLM's own changes to each of them."""
    prepared = []
    for index, token in enumerate(tokens):
        text = token.text
        if match := _NAME.match(text):
            prepared.append(token._replace(text=match[0].replace("_", "-") + text[match.end() :]))
        elif text.startswith(_O):
            level_follows = any(t.text in _LEVELS for t in tokens[index + 1 : index + 2])
            words = _short_o(text, parsing, level_follows=level_follows)
            prepared += [token._replace(text=word) for word in words]
        else:
            prepared.append(token)
    return prepared


def _short_o(text: str, parsing: Parsing, *, level_follows: bool) -> list[str]:
    """What ``-O``, ``-O3``, ``-O=3`` and ``-O.key`` become."""
    how = parsing.short_o
    level = text.removeprefix(_O).removeprefix("=")
    if how == "flag":
        return [f"--optimization-level={level}" if level else "--optimization-level"]
    if how == "dotted":
        if level.startswith("."):
            return [f"-cc{level}"]
        return [f"--optimization-level={level}" if level else "--optimization-level"]
    if how == "word":
        return [_O, level] if len(text) == len(_O) + 1 else [text]
    if level.startswith("."):
        return [text]
    if level:
        return [f"{_O}.{how}={level}"]
    return [f"{_O}.{how}"] if level_follows else [text]
