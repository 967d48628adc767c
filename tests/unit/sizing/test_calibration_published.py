"""Calibration on what others measured: half of a server's rows tell more of its other half.

The constants it starts from had not seen the server (``tests/data/latency_folds.json``).
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from performance_rows import FOLDS, read_rows

from vllm_advisor.sizing.calibration import calibrated
from vllm_advisor.sizing.refit import Observation
from vllm_advisor.types.latency import LatencyConstants

PAGE = Path(__file__).parents[3] / "docs" / "calibrate.md"
QUANTITIES = ("tpot", "throughput", "ttft")
ENOUGH = 8  # rows of a server


@cache
def servers() -> dict[str, list[Observation]]:
    found = defaultdict(list)
    for row in read_rows():
        if row.entry["load"] == "closed":
            found[row.group].append(replace(row.observed, weight=1.0))
    return {name: rows for name, rows in sorted(found.items()) if len(rows) >= ENOUGH}


@cache
def held_out() -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    """Errors of every second row, before and after calibrating on the others, by server."""
    folds = json.loads(FOLDS.read_text())
    found = {}
    for name, rows in servers().items():
        start = LatencyConstants(**folds["constants"][folds["folds"][name]])
        constants = calibrated(start, rows[::2]).constants
        others = rows[1::2]
        found[name] = {
            q: (errors(start, others, q), errors(constants, others, q)) for q in QUANTITIES
        }
    return found


def errors(constants: LatencyConstants, rows: list[Observation], quantity: str) -> list[float]:
    misses = (one.misses(constants).get(quantity) for one in rows)
    return [abs(math.exp(miss) - 1) for miss in misses if miss is not None]


def medians(quantity: str) -> tuple[float, float]:
    both = [each[quantity] for each in held_out().values()]
    before, after = ([e for pair in both for e in pair[which]] for which in (0, 1))
    return statistics.median(before), statistics.median(after)


@pytest.mark.parametrize(("quantity", "least"), [("tpot", 0.3), ("throughput", 0.3), ("ttft", 0.1)])
def test_what_was_not_measured_is_estimated_better(quantity: str, least: float) -> None:
    before, after = medians(quantity)
    assert after < (1 - least) * before


def test_most_servers_gain_and_none_loses_much() -> None:
    gains = [
        statistics.median(before) - statistics.median(after)
        for each in held_out().values()
        for before, after in [each["tpot"]]
        if before
    ]
    assert sum(gain > 0 for gain in gains) > 0.75 * len(gains)
    assert min(gains) > -0.05


def test_the_page_has_these_figures() -> None:
    (before, after), servers_told = medians("tpot"), len(servers())
    page = re.sub(r"\s+", " ", PAGE.read_text())
    assert f"{servers_told} servers" in page
    assert f"from {before * 100:.0f} % to {after * 100:.0f} %" in page
