"""What ``check`` says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.source import Confidence


class Severity(StrEnum):
    """SARIF's levels under their usual names."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault, with its place, the figures behind it and the fix.

    ``edits`` make the fix, where it is one that a machine can make: all of them together.
    """

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    location: Location
    fix: str
    evidence: tuple[tuple[str, str | int | float], ...] = ()
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """A rule that could not run, and the fact that was missing: never a silent pass."""

    rule: str
    reason: str
