"""What ``vllm-advisor check`` found, in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from vllm_advisor.report.check_summary import by_file, severity_counts, summary
from vllm_advisor.report.console import Page
from vllm_advisor.report.excerpt import excerpt
from vllm_advisor.report.values import cell

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}


def print_findings(
    check: Mapping[str, Any], texts: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print the findings of each file, what is suppressed or was not checked, and the counts.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
        texts: what was read, by file: findings there are shown with their line.
    """
    page = Page()
    for file, findings in by_file(check["findings"]).items():
        page.verbatim((file, "bold"), f"  {severity_counts(findings)}")
        page.blank()
        for finding in findings:
            _print_finding(page, finding, texts)
    _print_list(
        page,
        "Suppressed",
        [
            f"{_name(s)} {_place(s['location'])}: {s['reason'] or 'without a reason'}"
            for s in check.get("suppressed", ())
        ],
    )
    _print_list(page, "Not checked", _not_checked(check["not_checked"]))
    _print_sources(page, check)
    page.text(summary(check))


def _print_finding(page: Page, finding: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    severity = finding["severity"]
    page.text(
        (severity, _STYLES.get(severity, "bold")),
        (f" {_name(finding)}", "bold"),
        f"  {_place(finding['location'])}",
        f"  (confidence {finding['confidence']})" if finding["confidence"] != "high" else "",
    )
    line, caret = excerpt(finding["location"], texts, page.width)
    if line:
        page.verbatim(line)
        page.verbatim((caret, _STYLES.get(severity, "bold")))
    page.text(finding["message"], indent=2)
    evidence = _evidence(finding.get("evidence"))
    if evidence:
        page.text((evidence, "dim"), indent=2)
    if finding["fix"]:
        can = any(edit["safe"] for edit in finding.get("edits", ()))
        page.text(finding["fix"], " (--fix does it)" if can else "", indent=2, bullet="fix: ")
    page.blank()


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
    notes = [
        f"{note['location']['file']}:{note['location']['line']}: {note['message']}"
        for note in check.get("notes", ())
    ]
    _print_list(page, "Notes", notes)


def _print_list(page: Page, title: str, entries: Sequence[str]) -> None:
    if not entries:
        return
    page.verbatim((title, "bold"))
    for entry in entries:
        page.text(entry, indent=2, bullet="- ")
    page.blank()


def _not_checked(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per missing fact, with the rules that wait for it, as often as they do."""
    rules: dict[str, Counter[str]] = {}
    for entry in entries:
        rules.setdefault(entry["reason"], Counter())[entry["rule"]] += 1
    return [
        f"{reason}: "
        + ", ".join(f"{rule} x {times}" if times > 1 else rule for rule, times in waiting.items())
        for reason, waiting in rules.items()
    ]


def _name(finding: Mapping[str, Any]) -> str:
    return f"{finding['rule']} {finding['name']}"


def _place(place: Mapping[str, Any]) -> str:
    return f"{place['file']}:{place['line']}:{place['column']}"


def _evidence(evidence: Any) -> str:
    """Figures behind a finding, from a mapping or from pairs."""
    pairs = evidence.items() if isinstance(evidence, Mapping) else evidence or ()
    return ", ".join(f"{name} {cell(value, str(name))}" for name, value in pairs)
