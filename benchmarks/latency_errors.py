"""How far predicted latencies are from measured ones, for the fit and for the benchmark.

A miss is log(predicted / measured). Rows are told apart by quantity and regime: under a load, with
few requests at once (``ttft_unloaded``), and where requests wait for KV cache or for a place
(``_limited``).
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from performance_rows import FOLDS, Row, read_rows

from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.performance import performance
from vllm_advisor.sizing.refit import UNLOADED
from vllm_advisor.types.latency import LatencyConstants

_WAITING = 0.2  # per running request, from which on a row counts as limited

Pair = tuple[Row, LatencyConstants]


def closed_rows() -> list[Row]:
    """Rows of closed loops: what the constants are fitted to."""
    return [row for row in read_rows() if row.entry["load"] == "closed"]


def held_out() -> list[Pair]:
    """Each closed-loop row with the constants of the fold that had not seen its group."""
    kept = json.loads(FOLDS.read_text("utf-8"))
    folds = [LatencyConstants(**values) for values in kept["constants"]]
    return [(row, folds[kept["folds"][row.group]]) for row in closed_rows()]


def kind_of(row: Row, name: str, constants: LatencyConstants) -> str:
    """Quantity and regime of one measured figure: ``ttft_unloaded``, ``tpot_limited``."""
    served = row.observed.served(constants)
    if served.waiting > _WAITING * served.running:
        return f"{name}_limited"
    unloaded = row.entry.get("concurrency", math.inf) <= UNLOADED
    return f"{name}_unloaded" if name == "ttft" and unloaded else name


def misses(pairs: Iterable[Pair]) -> dict[str, list[float]]:
    """log(predicted / measured) by quantity and regime."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, constants in pairs:
        for name, miss in row.observed.misses(constants).items():
            found[kind_of(row, name, constants)].append(miss)
    return dict(sorted(found.items()))


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and 90th percentile of the error, bias, and the share within a quarter."""
    errors = sorted(abs(math.exp(value) - 1) for value in values)
    return {
        "rows": len(values),
        "median": round(statistics.median(errors), 3),
        "p90": round(errors[min(len(errors) - 1, int(0.9 * len(errors)))], 3),
        "bias": round(math.exp(statistics.median(values)) - 1, 3),
        "within_25": round(sum(e <= 0.25 for e in errors) / len(errors), 3),
    }


def in_range(row: Row, constants: LatencyConstants) -> dict[str, bool]:
    """By measured quantity: whether the range a person is shown holds the measurement.

    The ranges are the bundled ones; the points they are around come from ``constants``.
    """
    seen = row.observed
    shown = performance(
        replace(seen.station, constants=constants),
        load_latency(),
        engines=seen.engines,
        concurrency=(seen.concurrency or 1.0) * seen.engines,
    )
    pairs = {
        "tpot": (shown.tpot, seen.tpot),
        "throughput": (shown.output_tokens_per_second, seen.tokens_per_second),
        "ttft": (shown.ttft, seen.ttft),
    }
    return {name: span.low <= value <= span.high for name, (span, value) in pairs.items() if value}


def coverage(pairs: Iterable[Pair]) -> dict[str, list[bool]]:
    """Whether the bundled ranges hold what was measured, by quantity and regime."""
    found: dict[str, list[bool]] = defaultdict(list)
    for row, constants in pairs:
        for name, held in in_range(row, constants).items():
            found[kind_of(row, name, constants)].append(held)
    return dict(sorted(found.items()))
