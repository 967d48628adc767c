"""Comments that say: this finding is known, and why it may stay."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One ``# vllm-advisor: ignore=...`` comment.

    ``names`` are ids, names or families of rules as they are written, none where the comment
    cannot be read. ``first_line`` to ``last_line`` is what it speaks for; a whole file has no
    ``last_line``. ``problem`` says why the comment counts for nothing.
    """

    names: tuple[str, ...]
    reason: str
    location: Location
    first_line: int
    last_line: int | None
    problem: str = ""

    def covers(self, line: int) -> bool:
        """Whether a finding on this line is meant."""
        return self.first_line <= line and (self.last_line is None or line <= self.last_line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A finding that does not count, and the comment that says so."""

    finding: Finding
    suppression: Suppression
