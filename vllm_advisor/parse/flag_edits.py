"""Edits of a command whose meaning is certain although vLLM refuses it.

A word counts as written where its text stands at its place; words that come from a variable do
not, so no edit is ever made of them (see :class:`~vllm_advisor.types.edit.Edit`).
"""

from __future__ import annotations

from vllm_advisor.parse.shell import Token
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.engine import Flag

# The usual short names of types; they count only where vLLM has the long one among its choices.
_SHORT = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def boolean_edits(token: Token, taken: list[Token], value: str, instead: str) -> tuple[Edit, ...]:
    """``--enable-x True`` or ``--enable-x=True`` -> the flag alone, or its opposite.

    Args:
        token: the word with the flag.
        taken: the word after it, if that is its value.
        value: the value.
        instead: the flag that says the same without a value; empty if there is none.
    """
    old = token.text
    if taken:
        place = taken[0].location
        beside = token.location.column + len(token.text) + 1
        if (place.line, place.column) != (token.location.line, beside):
            return ()  # on another line, an item of its own, or further off
        old = f"{token.text} {value}"
    return (_edit(token, old, instead),) if instead else ()


def choice_edits(flag: Flag, source: Token, token: Token) -> tuple[Edit, ...]:
    """A choice in other letters, with ``_`` for ``-``, or by its usual short name -> the choice.

    Args:
        flag: the flag.
        source: the value; its place is that of the whole word for ``--flag=value``.
        token: the word with the flag.
    """
    meant = [choice for choice in flag.choices if _plain(choice) == _plain(source.text)]
    if len(meant) != 1:
        short = _SHORT.get(source.text.lower(), "")
        meant = [choice for choice in flag.choices if choice == short]
    if len(meant) != 1:
        return ()
    if source.location != token.location:
        return (_edit(source, source.text, meant[0]),)
    name = token.text.removesuffix(source.text)
    return (_edit(token, token.text, name + meant[0]),) if name.endswith("=") else ()


def _edit(token: Token, old: str, new: str) -> Edit:
    place = token.location
    return Edit(file=place.file, line=place.line, column=place.column, old=old, new=new)


def _plain(text: str) -> str:
    return text.lower().replace("_", "-")
