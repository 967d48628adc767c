"""Decisions: a value, its reason, its source, and what was rejected for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.types.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file a person can open."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An option that was not taken, and why."""

    option: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One thing decided.

    ``id`` is ``scope.subject`` (``long-docs.kv-cache-dtype``); ``dest`` names the ``vllm serve``
    flag it sets, ``None`` if it sets none. ``because`` lists ids of the figures and facts behind.
    """

    id: str
    subject: str
    value: Any
    reason: str
    source: Source
    because: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    dest: str | None = None
