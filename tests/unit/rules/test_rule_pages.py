"""The pages of rules: headings, examples that do what they say, and the table in docs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from checked_subject import TESTS, judge, source_of

from vllm_advisor.rules.pages import rule_markdown, rules_markdown
from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules

DOCS = TESTS.parent / "docs"
HEADINGS = ["What it checks", "Why it matters", "Bad", "Good", "Fix", "References"]
_RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.id)
# The examples in YAML are checked by test_yaml_pages.py.
_SCRIPTED = pytest.mark.parametrize(
    "rule", [r for r in all_rules() if "```bash" in r.page], ids=lambda r: r.id
)


def _sections(rule: Rule) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", rule.page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def _expect(path: Path, text: str) -> None:
    """Compare with a page of docs; ``UPDATE_GOLDEN=1`` writes it anew."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"UPDATE_GOLDEN=1 writes {path}"
    assert text == path.read_text(encoding="utf-8")


def _example(section: str) -> tuple[str, str]:
    """The text of an example, and a name that says what it is."""
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


@_SCRIPTED
def test_bad_example_has_this_finding_only(rule: Rule) -> None:
    found, _, _ = judge(*_example(_sections(rule)["Bad"]))
    assert [f.rule for f in found] == [rule.id]


@_SCRIPTED
def test_good_example_has_no_finding(rule: Rule) -> None:
    example = _example(_sections(rule)["Good"])
    assert source_of(*example).subjects or rule.scope == "source"
    found, _, skipped = judge(*example)
    assert found == []
    assert rule.id not in {s.rule for s in skipped}


@_RULES
def test_references_are_addresses_or_places_in_vllm(rule: Rule) -> None:
    lines = _sections(rule)["References"].splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"- (https://\S+|vllm:\d+\.\d+\.\d+:vllm/\S+)", line), line


def test_the_table_in_docs_is_current() -> None:
    _expect(DOCS / "rules.md", rules_markdown())


@_RULES
def test_the_page_in_docs_is_current(rule: Rule) -> None:
    _expect(DOCS / "rules" / f"{rule.id}.md", rule_markdown(rule))


def test_docs_have_a_page_for_every_rule_and_no_other() -> None:
    pages = {path.name for path in (DOCS / "rules").iterdir()}
    assert pages == {f"{rule.id}.md" for rule in all_rules()}


def test_table_lists_every_rule_once() -> None:
    rows = re.findall(
        r"^\| \[([A-Z0-9]+)\]\((\S+)\) \| ([a-z0-9-]+) \| (\w+) \| (.+) \|$",
        rules_markdown(),
        re.MULTILINE,
    )
    assert rows == [
        (r.id, f"rules/{r.id}.md", r.name, str(r.severity), r.summary) for r in all_rules()
    ]
    assert all((DOCS / link).is_file() for _, link, *_ in rows)
