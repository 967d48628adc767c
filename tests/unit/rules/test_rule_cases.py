"""Every source in tests/rules: its whole list of findings is compared, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from checked_subject import TESTS, expected, judge

from vllm_advisor.rules.registry import all_rules

FOLDER = TESTS / "rules"
CASES = sorted(path for path in FOLDER.glob("*/*") if path.is_file())


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", CASES, ids=_name)
def test_case(path: Path) -> None:
    script, rule = path.read_text("utf-8"), path.parent.name
    kind = path.name.partition("-")[0]
    found, _, skipped = judge(script, path.name)
    if path.suffix != ".sh":  # of a manifest other families have more to say
        wanted = {rule[:3], *(name[:3] for _, name in expected(script))}
        found = [f for f in found if f.rule[:3] in wanted]
    not_checked = {s.rule for s in skipped}
    assert sorted((f.location.line, f.rule) for f in found) == expected(script)
    assert all(f.location.file == path.name and f.fix and f.message for f in found)
    # An ok case has to be an answer, and an unknown case must not be one.
    assert (rule in not_checked) is (kind == "unknown")
    assert (rule in {f.rule for f in found}) is (kind == "bad")


# Rules about what is around a command have no scripts: their modules test_*_rules.py hold cases.
SCRIPTED = [r.id for r in all_rules() if "```bash" in r.page]


@pytest.mark.parametrize("rule", SCRIPTED)
def test_rule_has_cases(rule: str) -> None:
    kinds = {path.name.partition("-")[0] for path in (FOLDER / rule).glob("*")}
    assert {"bad", "ok"} <= kinds <= {"bad", "ok", "unknown"}


def test_no_folder_without_a_rule() -> None:
    assert set(SCRIPTED) <= {path.parent.name for path in CASES} <= {r.id for r in all_rules()}
