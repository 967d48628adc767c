"""Fit profiles/latency/constants.yaml to the measurements in tests/data/performance.jsonl.

``PYTHONPATH=benchmarks python tools/fit_latency.py`` writes the constants, and beside the data
those of five folds, each fitted without a fifth of the groups: what is said of errors and ranges
comes from groups that the constants had not seen. ``--report`` prints the errors by group,
``--models`` leaves out one model at a time, ``--check`` fits all rows again and says whether the
bundled constants are what comes out. Each takes minutes.

PRIOR is where the constants start and what few rows are held to; its second figure is how far a
constant may go from there, in its logarithm, before that costs as much as one residual.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import yaml
from latency_errors import closed_rows, kind_of, misses, summary
from performance_rows import FOLDS, Row

from vllm_advisor import resources
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.refit import refit
from vllm_advisor.types.latency import LatencyConstants

PRIOR = {
    "weight_read": (0.75, 0.45),
    "expert_read": (0.75, 0.6),
    "cache_read": (0.75, 0.45),
    "matrix": (0.45, 0.45),
    "expert_matrix": (0.2, 0.85),
    "expert_fp4": (1.0, 0.7),
    "expert_int4": (1.0, 0.7),
    "expert_spread": (0.8, 0.45),
    "int4_read": (0.9, 0.3),
    "int4_blackwell": (0.7, 0.55),
    "attention": (0.42, 0.55),
    "nvlink": (0.6, 0.55),
    "pcie": (0.35, 0.7),
    "all_reduce": (10e-6, 0.7),
    "layer": (12e-6, 0.7),
    "expert_layer": (10e-6, 1.1),
    "expert_layer_fp4": (5e-6, 1.1),
    "expert_layer_int4": (15e-6, 1.1),
    "prompt_layer": (50e-6, 2.1),
    "step": (1.3e-3, 0.7),
    "sequence": (12e-6, 0.7),
    "prefill_overlap": (1.0, 0.3),
    "request": (10e-3, 0.7),
    "prompt_token": (3e-6, 0.7),  # a third of a million tokens per second and thread
}
START_WAVE = 0.1  # InferenceX and vllm bench serve: a tenth of the requests or so start together
FOLD_COUNT = 5
DATE = "2026-11-30"
ORIGIN = (
    "{rows} closed-loop measurements in {groups} groups (model, format, GPU type, parallel sizes, "
    "source), vLLM 0.8 to 0.27, most of them 0.15 to 0.19 on H100, H200, B200 and B300"
)
HEAD = """\
# How far real steps stay behind the data sheets, fitted to published measurements.
# Written by tools/fit_latency.py from tests/data/performance.jsonl: change those, not this.
# Meaning of each: types/latency.py. Formula: sizing/step_time.py, sizing/steady_state.py.
# ranges: measured / predicted of 80 % of the rows whose group the constants had not seen.
# errors: of the same rows, shares; bias is predicted / measured - 1 at the median.
"""


def start() -> LatencyConstants:
    """The prior's centre."""
    return LatencyConstants(**{k: v for k, (v, _) in PRIOR.items()}, start_wave=START_WAVE)


def fit(rows: Iterable[Row]) -> LatencyConstants:
    """Constants for these rows; the share that starts together from their mean TTFT."""
    rows = list(rows)
    tolerance = {name: width for name, (_, width) in PRIOR.items()}
    found = refit(start(), [row.observed for row in rows], tolerance)
    return fit_wave(found, rows)


def fit_wave(constants: LatencyConstants, rows: Iterable[Row]) -> LatencyConstants:
    """The share of requests that start together: where the mean TTFT under load has no bias."""
    loaded = [row for row in rows if kind_of(row, "ttft", constants) == "ttft"]
    low, high = 0.0, 0.5
    for _ in range(20):
        share = (low + high) / 2
        with_share = LatencyConstants(**{**constants.as_dict(), "start_wave": share})
        bias = statistics.median(row.observed.misses(with_share)["ttft"] for row in loaded)
        low, high = (share, high) if bias < 0 else (low, share)
    return LatencyConstants(**{**constants.as_dict(), "start_wave": (low + high) / 2})


def folds(rows: Sequence[Row]) -> dict[str, int]:
    """The fold of each group."""
    groups = sorted(
        {row.group for row in rows}, key=lambda group: hashlib.sha256(group.encode()).hexdigest()
    )
    return {group: index % FOLD_COUNT for index, group in enumerate(groups)}


def spread(values: Sequence[float]) -> dict[str, float]:
    """10th and 90th percentile of measured / predicted."""
    ratios = sorted(math.exp(-value) for value in values)
    last = len(ratios) - 1
    return {"low": round(ratios[round(0.1 * last)], 3), "high": round(ratios[round(0.9 * last)], 3)}


def _check(rows: Sequence[Row]) -> int:
    """Print which bundled constants are not what the fit gives, to three digits; 1 for any."""
    bundled, fitted = load_latency().constants.as_dict(), fit(rows).as_dict()
    stale = [n for n, value in fitted.items() if not math.isclose(value, bundled[n], rel_tol=1e-3)]
    for name in stale:
        print(f"{name}: {bundled[name]:.4g} is bundled, the fit gives {fitted[name]:.4g}")
    print(f"{len(fitted) - len(stale)} of {len(fitted)} constants are current")
    return 1 if stale else 0


def main() -> None:
    """Write the files, or report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--report", action="store_true", help="errors of each group, held out")
    parser.add_argument("--models", action="store_true", help="leave out one model at a time")
    parser.add_argument("--check", action="store_true", help="whether the files are current")
    chosen = parser.parse_args()
    rows = closed_rows()
    if chosen.check:
        sys.exit(_check(rows))
    if chosen.models:
        for model in sorted({row.entry["model"] for row in rows}):
            out = [row for row in rows if row.entry["model"] == model]
            found = fit(row for row in rows if row.entry["model"] != model)
            for name, values in misses((row, found) for row in out).items():
                print(model, name, summary(values))
        return
    fold_of = folds(rows)
    parts = [fit(r for r in rows if fold_of[r.group] != fold) for fold in range(FOLD_COUNT)]
    held_out = [(row, parts[fold_of[row.group]]) for row in rows]
    if chosen.report:
        for group in fold_of:
            found_in = misses(pair for pair in held_out if pair[0].group == group)
            print(group, {name: summary(values) for name, values in found_in.items()})
        return
    seen = misses(held_out)
    constants = fit(rows)
    text = {
        "origin": ORIGIN.format(rows=len(rows), groups=len(fold_of)),
        "date": DATE,
        "sample": len(rows),
        "gpus": dict(Counter(row.entry["gpu"] for row in rows).most_common()),
        "constants": {k: float(f"{v:.4g}") for k, v in constants.as_dict().items()},
        "ranges": {name: spread(values) for name, values in seen.items()},
        "errors": {name: summary(values) for name, values in seen.items()},
    }
    path = resources.profiles("latency") / "constants.yaml"
    path.write_text(HEAD + yaml.safe_dump(text, sort_keys=False, width=96), encoding="utf-8")
    kept = {"folds": fold_of, "constants": [part.as_dict() for part in parts]}
    FOLDS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
