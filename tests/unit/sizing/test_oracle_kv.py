"""The KV cache against what vLLM 0.33.0's own code answered, from engine arguments to tokens.

Every row of the table takes part: defaults, attention backend, block size, blocks, tokens,
concurrency, the automatic length, and the refusals.
"""

from __future__ import annotations

from typing import Any

import pytest
from oracle_rows import NO_LMCACHE, NOT_MODELLED, ROWS, answered, differences, lay_out, name_of

from vllm_advisor.errors import AdvisorError, NotModelledError

ANSWERED = [r for r in ROWS if answered(r) and r["tag"] not in NOT_MODELLED]
REFUSED = [r for r in ROWS if not answered(r) and r["tag"] != NO_LMCACHE]


def named(rows: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(row, id=f"{name_of(row)}-{n}") for n, row in enumerate(rows)]


@pytest.mark.parametrize("row", named(ANSWERED))
def test_settings_and_capacity_are_vllms(row: dict[str, Any]) -> None:
    assert differences(row) == []


@pytest.mark.parametrize("row", named(REFUSED))
def test_what_vllm_refuses_is_never_sized(row: dict[str, Any]) -> None:
    with pytest.raises(AdvisorError):
        lay_out(row)


def test_what_is_not_modelled_is_said() -> None:
    rows = [r for r in ROWS if r["ok"] and r["tag"] in NOT_MODELLED]
    assert len(rows) >= len(NOT_MODELLED)
    for row in rows:
        with pytest.raises(NotModelledError):
            lay_out(row)


def test_enough_is_compared() -> None:
    """The comparison must not shrink unseen: settings, answers and models that take part."""
    assert len(ANSWERED) >= 580
    assert sum(len(row["runs"]) for row in ANSWERED) >= 1600
    assert len({row["model"] for row in ANSWERED}) >= 105
    assert len(REFUSED) >= 65
