"""Passages of a text by the words of a question (BM25). Put your own retrieval in its place."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_SATURATION = 1.5  # BM25's k1: how soon a word that comes again adds no more
_LENGTH = 0.75  # BM25's b: how much a long passage has to have more of it


def read_document(path: Path) -> str:
    """The text of a file, or of all .txt and .md files of a folder."""
    files = [path]
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in (".txt", ".md"))
    return "\n\n".join(f"[{each.name}]\n\n{each.read_text(encoding='utf-8')}" for each in files)


def retrieve(
    question: str, text: str, chunk_tokens: int, max_tokens: int, count: Callable[[str], int]
) -> list[str]:
    """Passages with the rarest words of the question, of ``max_tokens`` together, as in the text.

    None has more than ``chunk_tokens``, by ``count``, and none shares no word with the question.
    """
    passages = split(text, min(chunk_tokens, max_tokens), count)
    found: list[int] = []
    left = max_tokens
    for index in ranking(question, passages):
        length = count(passages[index])
        if length <= left:
            found.append(index)
            left -= length
    return [passages[index] for index in sorted(found)]


def split(text: str, max_tokens: int, count: Callable[[str], int]) -> list[str]:
    """Passages of whole paragraphs; a paragraph that is too long is halved at a space."""
    passages: list[str] = []
    waiting = [each for each in re.split(r"\n\s*\n", text) if each.strip()][::-1]
    while waiting:
        paragraph = waiting.pop()
        if count(paragraph) > max_tokens and len(paragraph) > 1:
            half = paragraph.rfind(" ", 1, len(paragraph) // 2) + 1 or len(paragraph) // 2
            waiting += [paragraph[half:], paragraph[:half]]
        elif passages and count(f"{passages[-1]}\n\n{paragraph}") <= max_tokens:
            passages[-1] += f"\n\n{paragraph}"
        else:
            passages.append(paragraph)
    return passages


def ranking(question: str, passages: list[str]) -> list[int]:
    """Indexes of the passages that share words with the question, the best first."""
    bags = [Counter(_words(passage)) for passage in passages]
    mean = sum(bag.total() for bag in bags) / max(1, len(bags)) or 1
    scores = [0.0] * len(bags)
    for word in set(_words(question)):
        holding = sum(word in bag for bag in bags)
        rarity = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for index, bag in enumerate(bags):
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * bag.total() / mean)
            scores[index] += rarity * bag[word] * (_SATURATION + 1) / (bag[word] + damping)
    best = sorted(range(len(bags)), key=lambda index: -scores[index])
    return [index for index in best if scores[index] > 0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
