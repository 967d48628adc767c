"""Edits of a text: where they apply, and the text after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from vllm_advisor.types.edit import Edit

_QUOTES = ("'", '"')


def placed(text: str, edit: Edit) -> Edit | None:
    """The edit where its ``old`` really stands: at its place, or after a quote that opens there.

    A word in quotes begins at its quote for a reader of shell or YAML; what is replaced is inside.

    Returns:
        The edit, or ``None`` where something else stands at its place.
    """
    start = _offset(text, edit.line, edit.column)
    if start is None:
        return None
    if text.startswith(edit.old, start):
        return edit
    quote = text[start : start + 1]
    end = start + 1 + len(edit.old)
    if quote in _QUOTES and text.startswith(edit.old, start + 1) and text[end : end + 1] == quote:
        return replace(edit, column=edit.column + 1)
    return None


def overlap(text: str, edits: Iterable[Edit]) -> bool:
    """Whether two different edits change the same characters, or insert at the same place."""
    spans = sorted(_span(text, edit) for edit in set(edits))
    return any(after[0] < before[1] or after[:2] == before[:2] for before, after in pairwise(spans))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits; every other character stays as it is.

    Args:
        text: a text whose lines end in a newline.
        edits: changes of it, in any order; one that is given twice is made once.

    Raises:
        ValueError: two edits overlap, or the text to be replaced does not stand at its place.
    """
    edits = set(edits)
    if overlap(text, edits):
        raise ValueError("two edits change the same place")
    for edit in sorted(edits, key=lambda e: (e.line, e.column, len(e.old)), reverse=True):
        start, end = _span(text, edit)[:2]
        text = text[:start] + edit.new + text[end:]
    return text


def _span(text: str, edit: Edit) -> tuple[int, int, str]:
    """Where the replaced text begins and ends, and what comes there."""
    start = _offset(text, edit.line, edit.column)
    if start is None or not text.startswith(edit.old, start):
        raise ValueError(f"{edit.old!r} does not stand at line {edit.line}, column {edit.column}")
    return start, start + len(edit.old), edit.new


def _offset(text: str, line: int, column: int) -> int | None:
    """Position of a place; the end of a line is one, what lies beyond it is none."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if not start:
            return None
    end = text.find("\n", start)
    position = start + column - 1
    return position if column > 0 and position <= (len(text) if end < 0 else end) else None
