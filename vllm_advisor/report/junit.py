"""JUnit XML, as CI servers show it: a suite for each file, and one for what was not found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from vllm_advisor.report.check_summary import by_file, one_line

_ORDER = ("error", "warning", "info")
_RULES_SUITE = "rules without findings"


def junit_xml(check: Mapping[str, Any], fail_on: str) -> str:
    """The report as JUnit XML; what makes the command exit 1 is a failure here, and nothing else.

    Findings below ``fail_on`` are cases that pass, with their text as output. Suppressed findings
    and rules that could not be checked are skipped cases with their reason.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
        fail_on: ``error``, ``warning``, ``info`` or ``never``.
    """
    limit = _ORDER.index(fail_on) if fail_on in _ORDER else -1
    suites = []
    total = [0, 0, 0]
    findings = (*check["findings"], *check.get("suppressed", ()))
    for file, found in by_file(findings).items():
        cases = [_finding_case(finding, limit) for finding in found]
        suites.append(_suite(file, cases, total))
    with_findings = {finding["rule"] for finding in findings}
    suites.append(_suite(_RULES_SUITE, list(_rule_cases(check, with_findings)), total))
    tests, failures, skipped = total
    counts = f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"'
    head = f'<testsuites name="vllm-advisor check" {counts}>'
    return "\n".join(('<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>\n"))


def _suite(name: str, cases: list[tuple[str, str]], total: list[int]) -> str:
    """A suite of ``(kind, text)`` cases; adds to tests, failures and skipped of all."""
    kinds = [kind for kind, _ in cases]
    numbers = (len(kinds), kinds.count("failure"), kinds.count("skipped"))
    for index, number in enumerate(numbers):
        total[index] += number
    tests, failures, skipped = numbers
    counts = f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"'
    lines = (f"  <testsuite name={_attribute(name)} {counts}>", *(text for _, text in cases))
    return "\n".join((*lines, "  </testsuite>"))


def _finding_case(finding: Mapping[str, Any], limit: int) -> tuple[str, str]:
    place = finding["location"]
    name = f"{finding['rule']} {finding['name']} line {place['line']}, column {place['column']}"
    text = finding["message"] + (f"\nfix: {finding['fix']}" if finding["fix"] else "")
    if "suppressed_at" in finding:
        reason = finding["reason"] or "without a reason"
        return _case(place["file"], name, "skipped", f"suppressed: {reason}", text)
    if _ORDER.index(finding["severity"]) <= limit:
        kind = f"failure type={_attribute(finding['severity'])}"
        return _case(place["file"], name, kind, finding["message"], text)
    return _case(place["file"], name, "system-out", "", f"{finding['severity']}: {text}")


def _rule_cases(check: Mapping[str, Any], with_findings: set[str]) -> Iterator[tuple[str, str]]:
    """A case for every rule that found nothing, or could not be checked somewhere."""
    reasons: dict[str, list[str]] = {}
    for skipped in check["not_checked"]:
        reasons.setdefault(skipped["rule"], []).append(skipped["reason"])
    for rule in check.get("rules", ()):
        if rule in reasons:
            why = f"not checked: {'; '.join(reasons[rule])}"
            yield _case("vllm-advisor", rule, "skipped", why, "")
        elif rule not in with_findings:
            yield "passed", f'    <testcase classname="vllm-advisor" name={_attribute(rule)}/>'


def _case(group: str, name: str, kind: str, message: str, text: str) -> tuple[str, str]:
    attributes = f"classname={_attribute(group)} name={_attribute(name)}"
    tag = kind.partition(" ")[0]
    said = f" message={_attribute(message)}" if message else ""
    inner = f"      <{kind}{said}>{_text(text)}</{tag}>" if text else f"      <{kind}{said}/>"
    return tag, f"    <testcase {attributes}>\n{inner}\n    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(one_line(text))


def _text(text: str) -> str:
    """Text whose lines stay; what XML cannot hold is written as an escape."""
    return escape("\n".join(one_line(line) for line in text.split("\n")))
