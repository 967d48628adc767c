"""Pages whose examples are YAML: the bad one has the finding, the good one has not."""

from __future__ import annotations

import re

import pytest

from vllm_advisor.api.checking import CheckReport, check
from vllm_advisor.parse.kinds import kind_of
from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules

_YAML = pytest.mark.parametrize(
    "rule", [r for r in all_rules() if "```yaml" in r.page], ids=lambda r: r.id
)


def _checked(rule: Rule, heading: str) -> CheckReport:
    match = re.search(rf"^## {heading}\n```yaml\n(.*?)\n```$", rule.page, re.DOTALL | re.MULTILINE)
    assert match, f"{rule.id} has no example under {heading}"
    kind = kind_of("example.yaml", match[1]) or "kubernetes"  # a fragment looks like nothing
    return check("example.yaml", text=match[1], kind=kind)


@_YAML
def test_bad_example_has_the_finding(rule: Rule) -> None:
    found = _checked(rule, "Bad").findings
    assert [f.rule for f in found if f.rule == rule.id] == [rule.id]
    assert all(f.fix and f.location.file == "example.yaml" for f in found)


@_YAML
def test_good_example_has_it_not(rule: Rule) -> None:
    report = _checked(rule, "Good")
    assert rule.id not in {f.rule for f in report.findings}
    assert rule.id not in {n.rule for n in report.not_checked}
