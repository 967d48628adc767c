"""What the formats of check have in common: counts, order of files, one printable line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vllm_advisor.report.values import counted
from vllm_advisor.visible import visible

Finding = Mapping[str, Any]
_NOUNS = (("error", "error"), ("warning", "warning"), ("info", "remark"))
_NOT_FILES = ("-", "command line")


def severity_counts(findings: Iterable[Finding]) -> str:
    """``1 error, 2 warnings, 0 remarks``."""
    severities = [finding["severity"] for finding in findings]
    return ", ".join(counted(severities.count(severity), noun) for severity, noun in _NOUNS)


def summary(check: Mapping[str, Any]) -> str:
    """All counts of a report, in one line; what is none is left out, but for the findings."""
    parts = [severity_counts(check["findings"])]
    if suppressed := check.get("suppressed"):
        parts.append(f"{len(suppressed)} suppressed")
    if not_checked := check["not_checked"]:
        parts.append(f"{counted(len(not_checked), 'rule')} not checked")
    return f"{'; '.join(parts)} (vLLM {check['vllm_version']})"


def by_file(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings of each file, files in the order of their first finding."""
    files: dict[str, list[Finding]] = {}
    for finding in findings:
        files.setdefault(finding["location"]["file"], []).append(finding)
    return files


def is_file(name: str) -> bool:
    """Whether a place is in a file, not in standard input or in a command given as words."""
    return name not in _NOT_FILES


def one_line(text: str) -> str:
    """Text without line breaks and invisible characters, surrogates among them."""
    return visible(text)
