"""What a run of needles found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vllm_advisor.verify.question import NeedleTexts

SCHEMA_VERSION = "1"
_SHORT = 0.8  # what a length asked for is never missed by, unless someone cuts the prompt


class Outcome(StrEnum):
    """What came of one cell."""

    HIT = "hit"
    MISS = "miss"
    REFUSED = "refused"  # the server does not take so long a prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One length and one depth.

    ``length`` is what was asked for, ``prompt_tokens`` what the server counted; ``depth`` is in
    percent. ``answer`` is the model's, ``refusal`` the server's words; one of them is ``None``.
    ``reasoning`` is told only where the answer is empty.
    """

    length: int
    depth: float
    outcome: Outcome
    expect: str
    copies: int  # of the document, the last one perhaps cut
    prompt_tokens: int | None = None
    answer: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    cut_off: bool = False  # the answer ended at max_tokens
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "length": self.length,
            "depth": self.depth,
            "prompt_tokens": self.prompt_tokens,
            "hit": self.outcome is Outcome.HIT,
            "outcome": self.outcome.value,
            "expect": self.expect,
            "answer": self.answer,
            "reasoning": self.reasoning,
            "refusal": self.refusal,
            "cut_off": self.cut_off,
            "copies": self.copies,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleResult:
    """All cells of a run, by length and then by depth."""

    model: str
    base_url: str
    document: str
    texts: NeedleTexts
    max_tokens: int
    min_hit_rate: float
    cells: tuple[Cell, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def hits(self) -> int:
        """Cells whose needle was found."""
        return sum(cell.outcome is Outcome.HIT for cell in self.cells)

    @property
    def hit_rate(self) -> float:
        """Share of the cells whose needle was found; what was refused was not found."""
        return self.hits / len(self.cells)

    @property
    def passed(self) -> bool:
        """Whether the hit rate is reached."""
        return self.hit_rate >= self.min_hit_rate

    def to_dict(self) -> dict[str, Any]:
        """JSON types: what ``--format json`` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "model": self.model,
            "base_url": self.base_url,
            "document": self.document,
            "needle": self.texts.needle,
            "question": self.texts.question,
            "expect": self.texts.expect,
            "max_tokens": self.max_tokens,
            "cells": [cell.to_dict() for cell in self.cells],
            "hits": self.hits,
            "hit_rate": round(self.hit_rate, 4),
            "min_hit_rate": self.min_hit_rate,
            "passed": self.passed,
            "assumptions": list(self.assumptions),
            "notes": list(self._notes()),
        }

    def _notes(self) -> list[str]:
        notes = []
        copies = {cell.length: cell.copies for cell in self.cells if cell.copies > 1}
        notes += [
            f"{length:,} tokens are longer than the document: it stands there {count:,} times, "
            "the last time perhaps cut"
            for length, count in copies.items()
        ]
        thought = sum(cell.reasoning is not None for cell in self.cells)
        if thought:
            notes.append(
                f"{_cells(thought)} had reasoning and no answer, which is no hit: raise "
                f"--max-tokens above {self.max_tokens}"
            )
        cut = sum(
            cell.cut_off and cell.outcome is Outcome.MISS and cell.reasoning is None
            for cell in self.cells
        )
        if cut:
            notes.append(f"{_cells(cut)} missed with an answer cut off at --max-tokens")
        short = sum(
            c.prompt_tokens is not None and c.prompt_tokens < _SHORT * c.length for c in self.cells
        )
        if short:
            notes.append(
                f"{_cells(short)} had less than {_SHORT:.0%} of the tokens asked for, as the "
                "server counts them: it may cut long prompts"
            )
        uncounted = sum(c.prompt_tokens is None and c.answer is not None for c in self.cells)
        if uncounted:
            notes.append(
                f"{_cells(uncounted)} came without usage: the length of the prompt is not known"
            )
        return notes


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"
