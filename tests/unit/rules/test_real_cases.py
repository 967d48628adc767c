"""Deployments of other people: what stopped or slowed them is found, and nothing is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from accuracy_check import RealCase, real_cases

CASES = real_cases()


def _marked(case: RealCase) -> ParameterSet:
    marks = [pytest.mark.xfail(reason=case.why_not)] if case.why_not else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_case(case: RealCase, tmp_path: Path) -> None:
    assert case.missed(case.report(tmp_path)) == ""


def test_every_level_has_cases() -> None:
    assert {case.level for case in CASES} == {"error", "warning", "ok"}
    assert all(case.rules for case in CASES if case.level != "ok")
