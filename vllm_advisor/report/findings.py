"""What ``vllm-advisor check`` found, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import cell, counted

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}


def print_findings(check: Mapping[str, Any]) -> None:
    """Print every finding with its place and its fix, what was not checked, and the count.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    findings: Sequence[Mapping[str, Any]] = check["findings"]
    for finding in findings:
        _print_finding(page, finding)
    not_checked: Sequence[Mapping[str, Any]] = check["not_checked"]
    if not_checked:
        page.verbatim(("Not checked", "bold"))
        for skipped in not_checked:
            page.text(f"{skipped['rule']}: {skipped['reason']}", indent=2, bullet="- ")
        page.blank()
    _print_sources(page, check)
    counts = [
        counted(sum(f["severity"] == severity for f in findings), noun)
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "remark"))
    ]
    unchecked = f"; {counted(len(not_checked), 'rule')} not checked" if not_checked else ""
    page.text(f"{', '.join(counts)}{unchecked} (vLLM {check['vllm_version']})")


def _print_sources(page: Page, check: Mapping[str, Any]) -> None:
    """What was taken from files: versions and hardware of each server, and what was passed over."""
    read = [one for one in check.get("instances", ()) if one["kind"] not in ("serve", "shell")]
    if read:
        page.verbatim(("Checked", "bold"))
    for one in read:
        gpu = f"{one['gpu_count']} x {one['gpu']}" if one["gpu"] else "GPU not known"
        version = f"vLLM {one['vllm_version']} ({one['vllm_version_source']})"
        name = f"{one['name']}: {one['model'] or 'model not named'}"
        page.text(f"{name}; {version}; {gpu}", indent=2, bullet="- ")
    if read:
        page.blank()
    notes: Sequence[Mapping[str, Any]] = check.get("notes", ())
    if notes:
        page.verbatim(("Notes", "bold"))
        for note in notes:
            place = note["location"]
            page.text(f"{place['file']}:{place['line']}: {note['message']}", indent=2, bullet="- ")
        page.blank()


def _print_finding(page: Page, finding: Mapping[str, Any]) -> None:
    place = finding["location"]
    severity = finding["severity"]
    page.text(
        (severity, _STYLES.get(severity, "bold")),
        (f" {finding['rule']} {finding['name']}", "bold"),
        f"  {place['file']}:{place['line']}:{place['column']}",
        f"  (confidence {finding['confidence']})" if finding["confidence"] != "high" else "",
    )
    page.text(finding["message"], indent=2)
    evidence = _evidence(finding.get("evidence"))
    if evidence:
        page.text((evidence, "dim"), indent=2)
    if finding["fix"]:
        page.text(finding["fix"], indent=2, bullet="fix: ")
    page.blank()


def _evidence(evidence: Any) -> str:
    """Figures behind a finding, from a mapping or from pairs."""
    pairs = evidence.items() if isinstance(evidence, Mapping) else evidence or ()
    return ", ".join(f"{name} {cell(value, str(name))}" for name, value in pairs)
