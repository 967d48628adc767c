"""The pages of rules: headings, examples that do what they say, and the table in docs."""

from __future__ import annotations

import re

import pytest
from checked_subject import TESTS, judged

from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules, rules_markdown

HEADINGS = ["What it checks", "Why it matters", "Bad", "Good", "Fix", "References"]
_RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.id)


def _sections(rule: Rule) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", rule.page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def _example(section: str) -> tuple[str, str]:
    """The text of an example, and a name for it."""
    match = re.fullmatch(r"```(bash|yaml)\n(.*)\n```", section, re.DOTALL)
    assert match, section
    return match[2], {"bash": "serve.sh", "yaml": "example.yaml"}[match[1]]


@_RULES
def test_headings_are_complete_and_in_order(rule: Rule) -> None:
    sections = _sections(rule)
    assert list(sections) == HEADINGS
    assert all(sections.values())


@_RULES
def test_page_begins_with_one_sentence(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    assert len(rule.summary) < 100
    assert rule.page.splitlines()[1] == ""


@_RULES
def test_bad_example_has_this_finding_only(rule: Rule) -> None:
    found, _ = judged(*_example(_sections(rule)["Bad"]))
    assert [finding.rule for finding in found] == [rule.id]


@_RULES
def test_good_example_has_no_finding(rule: Rule) -> None:
    found, not_checked = judged(*_example(_sections(rule)["Good"]))
    assert found == []
    assert rule.id not in not_checked


@_RULES
def test_references_are_addresses_or_places_in_vllm(rule: Rule) -> None:
    lines = _sections(rule)["References"].splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"- (https://\S+|vllm:\d+\.\d+\.\d+:vllm/\S+)", line), line


def test_docs_page_is_current() -> None:
    page = (TESTS.parent / "docs" / "rules.md").read_text("utf-8")
    assert page == rules_markdown()


def test_table_lists_every_rule_once() -> None:
    rows = re.findall(
        r"^\| ([A-Z0-9]+) \| ([a-z0-9-]+) \| (\w+) \| (.+) \|$", rules_markdown(), re.MULTILINE
    )
    assert rows == [(r.id, r.name, str(r.severity), r.summary) for r in all_rules()]
