"""What a start-up log of vLLM says, each fact with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFact:
    """One figure of one line.

    ``value`` is in bytes where ``unit`` is ``bytes``, rounded as the log rounds it (0.01 GiB); in
    seconds, tokens, requests, blocks or a share otherwise; text where ``unit`` is ``text``.
    ``process`` is the one that printed it (``Worker_TP0``), empty where the log does not say.
    """

    id: str
    value: int | float | str
    unit: str
    line: int
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """A warning or an error: its text, its first line and how often it was printed."""

    text: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRefusal:
    """Why vLLM did not start: which known message, its text and the figures in it."""

    kind: str
    text: str
    line: int
    count: int = 1
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLog:
    """One start: the last one of the file.

    ``arguments`` are by vLLM's dest names, as ``arguments_from`` printed them: the line
    ``non-default args`` (or ``args`` of 0.8), or the engine's ``config``, which has fewer. Values
    of secrets are left out and named in ``unread``, as are values that are no plain data.
    """

    facts: tuple[LogFact, ...]
    arguments: Mapping[str, Any]
    arguments_from: str
    arguments_line: int | None
    unread: tuple[str, ...]
    warnings: tuple[LogMessage, ...]
    refusals: tuple[LogRefusal, ...]
    lines: int
    first_line: int  # of this start
    starts: int

    def all(self, fact_id: str) -> tuple[LogFact, ...]:
        """Every line that states the fact, in their order."""
        return tuple(f for f in self.facts if f.id == fact_id)

    def first(self, fact_id: str) -> LogFact | None:
        """The first line that states it."""
        return next((f for f in self.facts if f.id == fact_id), None)

    def largest(self, fact_id: str) -> LogFact | None:
        """Of the rank that has most of it: ranks differ, and the fullest one decides."""
        return max(self.all(fact_id), key=_amount, default=None)

    def smallest(self, fact_id: str) -> LogFact | None:
        """Of the rank that has least of it: the KV cache is as large as the smallest rank's."""
        return min(self.all(fact_id), key=_amount, default=None)

    @property
    def started(self) -> bool:
        """The server said that it is ready."""
        return self.first("started") is not None


def _amount(fact: LogFact) -> float:
    return 0.0 if isinstance(fact.value, str) else float(fact.value)
