"""What check() found, as an object and as plain data."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from vllm_advisor.parse.remarks import Note
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Finding, NotChecked, Severity
from vllm_advisor.types.suppression import Suppressed

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedInstance:
    """One server that was checked, and what was taken for its version and hardware.

    ``gpu`` is None where it is not known; ``figures`` is the key of the report's figures.
    """

    name: str
    kind: str
    location: Location
    model: str
    vllm_version: str
    vllm_version_source: str
    gpu: str | None
    gpu_count: int | None
    gpu_source: str | None
    figures: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "location": _place(self.location)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Findings, what could not be checked, and the servers found with their figures.

    ``notes`` say what was passed over or taken for granted in reading. ``suppressed`` findings are
    kept back by comments and do not count. ``rules`` are the ids of those that were selected.
    ``texts`` holds what was read, by file.
    """

    vllm_version: str
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    figures: dict[str, dict[str, Any]]
    instances: tuple[CheckedInstance, ...] = ()
    notes: tuple[Note, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    rules: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def fails(self, fail_on: str) -> bool:
        """Whether a finding is at or above ``fail_on`` (``never`` never fails)."""
        if fail_on == "never":
            return False
        limit = _ORDER.index(Severity(fail_on))
        return any(_ORDER.index(f.severity) <= limit for f in self.findings)

    def line(self, location: Location) -> str | None:
        """The line of a place, where its text is at hand."""
        lines = _lines(self.texts.get(location.file, ""))
        there = location.file in self.texts and 0 < location.line <= len(lines)
        return lines[location.line - 1].removesuffix("\r") if there else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        prints = self._fingerprints((*self.findings, *(s.finding for s in self.suppressed)))
        return {
            "schema_version": "1",
            "vllm_version": self.vllm_version,
            "findings": [_finding(f, next(prints)) for f in self.findings],
            "suppressed": [
                {
                    **_finding(s.finding, next(prints)),
                    "reason": s.suppression.reason,
                    "suppressed_at": _place(s.suppression.location),
                }
                for s in self.suppressed
            ],
            "not_checked": [{"rule": n.rule, "reason": n.reason} for n in self.not_checked],
            "rules": list(self.rules),
            "figures": self.figures,
            "instances": [row.to_dict() for row in self.instances],
            "notes": [
                {"message": note.message, "location": _place(note.location)} for note in self.notes
            ],
        }

    def _fingerprints(self, findings: Iterable[Finding]) -> Iterator[str]:
        """A name for each finding that stays when lines are added above it, or numbers change.

        Made of the rule, the file and the text of the line; the message stands in for a line that
        is not at hand. Equal ones are numbered in their order.
        """
        seen: Counter[tuple[str, ...]] = Counter()
        for finding in findings:
            line = self.line(finding.location)
            about = finding.message if line is None else " ".join(line.split())
            key = (finding.rule, finding.location.file, about)
            seen[key] += 1
            text = "\0".join((*key, str(seen[key])))
            data = text.encode("utf-8", "surrogatepass")
            yield hashlib.sha256(data).hexdigest()[:32]


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def severity_order(finding: Finding) -> tuple[int, str, int, int, str]:
    """Sort key: worst first, then by place."""
    place = finding.location
    severity = _ORDER.index(finding.severity)
    return (severity, place.file, place.line, place.column, finding.rule)


def _finding(finding: Finding, fingerprint: str) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "location": _place(finding.location),
        "evidence": dict(finding.evidence),
        "fix": finding.fix,
        "edits": [
            {
                "file": edit.file,
                "start": {"line": edit.line, "column": edit.column},
                "end": dict(zip(("line", "column"), edit.end, strict=True)),
                "old": edit.old,
                "new": edit.new,
                "safe": edit.safe,
            }
            for edit in finding.edits
        ],
        "fingerprint": fingerprint,
    }


def _place(place: Location) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}
