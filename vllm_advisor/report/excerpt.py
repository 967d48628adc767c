"""The line of a finding with a caret under its column, in a given width."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from vllm_advisor.visible import visible

_CUT = "..."


def excerpt(place: Mapping[str, Any], texts: Mapping[str, str], width: int) -> tuple[str, str]:
    """Two lines: the source line behind its number, and the caret; empty if no text is at hand.

    A line that is too long is cut on both sides of the caret.

    Args:
        place: ``file``, ``line`` and ``column``.
        texts: what was read, by file.
        width: columns of a terminal that there are.
    """
    lines = _lines(texts.get(place["file"], ""))
    if place["file"] not in texts or not 0 < place["line"] <= len(lines):
        return "", ""
    line = lines[place["line"] - 1].rstrip()
    gutter = f"{place['line']:>4} | "
    room = max(20, width - len(gutter))
    before, after = visible(line[: place["column"] - 1]), visible(line[place["column"] - 1 :])
    blanks = len(before) - len(before.lstrip())
    before = before[blanks:]  # the indentation says nothing here
    if _width(before) + _width(after) > room and _width(before) > room // 3:
        before = _CUT + _last(before, room // 3 - len(_CUT))
    if _width(before) + _width(after) > room:
        after = _first(after, room - _width(before) - len(_CUT)) + _CUT
    caret = " " * (len(gutter) - 2) + "| " + " " * _width(before) + "^"
    return gutter + before + after, caret


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _first(text: str, room: int) -> str:
    end = 0
    while end < len(text) and _width(text[: end + 1]) <= room:
        end += 1
    return text[:end]


def _last(text: str, room: int) -> str:
    return _first(text[::-1], room)[::-1]
