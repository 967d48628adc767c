"""The haystack: a document cut or repeated to a length, with a sentence put in at a depth."""

from __future__ import annotations

import re
from collections.abc import Callable

_GAP = "\n\n"  # between one copy of the document and the next
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?])[^\S\n]+|(?<=[\u3002\uff01\uff1f])")
_WORD_END = re.compile(r"\s+")
_NEAR = 0.02  # how far from the depth, as a share of the text, a sentence end may be
_TRIES = 12
_CHARACTERS_PER_TOKEN = 4  # where the search starts; English text


def copies(document: str, characters: int) -> int:
    """How many copies of the document, the last perhaps cut, have so many characters."""
    return -(-characters // len(document + _GAP))


def piece(document: str, characters: int) -> str:
    """The first ``characters`` of the document, repeated as often as that takes."""
    return ((document + _GAP) * copies(document, characters))[:characters]


def place(text: str, needle: str, depth: float) -> str:
    """The text with the needle at ``depth`` percent of its characters.

    It stands at the nearest end of a line or sentence, else between the nearest two words, else
    right there; never further than 2 % of the text from the depth.
    """
    at = _position(text, depth)
    before, after = text[:at], text[at:]
    joint = "" if not before or before[-1].isspace() else " "
    end = "" if not after else "\n" if not before or before[-1] == "\n" else " "
    return f"{before}{joint}{needle}{end}{after}"


def _position(text: str, depth: float) -> int:
    target = round(len(text) * depth / 100)
    if target in (0, len(text)):
        return target
    reach = int(len(text) * _NEAR)
    start, stop = max(0, target - reach), min(len(text), target + reach)
    for pattern in (_SENTENCE_END, _WORD_END):
        found = [m.end() for m in pattern.finditer(text, start, stop)]
        found += [edge for edge in (0, len(text)) if start <= edge <= stop]
        if found:
            return min(found, key=lambda end: abs(end - target))
    return target


def longest(count: Callable[[int], int], *, target: int) -> int:
    """Most characters found whose prompt has ``target`` tokens or few less; 0 if none.

    Args:
        count: tokens of the prompt with so many characters of the haystack; grows with them.
        target: tokens of the whole prompt.
    """
    frame = count(0)
    if frame > target:
        return 0
    enough = target - max(8, target // 500)
    fits, too_long = 0, 0  # 0: not known yet
    tried = (target - frame) * _CHARACTERS_PER_TOKEN
    for _ in range(_TRIES):
        tokens = count(tried)
        if tokens <= target:
            fits = tried
        else:
            too_long = tried
        if enough <= tokens <= target:
            break
        tried = tried * (target - frame) // max(1, tokens - frame)
        if tried <= fits or (too_long and tried >= too_long):
            tried = (fits + too_long) // 2 if too_long else 2 * fits
        if tried == fits:
            break
    return fits
