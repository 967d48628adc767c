"""Predicted latency and throughput against published measurements nobody fitted them to.

Every closed-loop row of tests/data/performance.jsonl is predicted with the constants of the fold
that had not seen its group: a model in one format on one GPU type with the same parallel sizes,
from one source. Errors are shares of the measured figure; a bias above zero is predicted too long,
or too fast. Covered: the bundled range around the prediction holds the measurement.

``--second-opinion N`` asks aiconfigurator about N of the rows instead, a few of each group, and
prints both on those that it answers.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from latency_errors import Pair, coverage, held_out, misses, summary
from second_opinion import answers, misses_of, stratified

from vllm_advisor.api.second_opinion import AICONFIGURATOR

NAMES = {
    "tpot": "TPOT",
    "throughput": "throughput",
    "ttft_unloaded": "TTFT, up to 4 at once",
    "ttft": "TTFT under load, mean",
    "tpot_limited": "TPOT, requests wait",
    "throughput_limited": "throughput, requests wait",
    "ttft_limited": "TTFT, requests wait",
}
HEAD = f"{'':34} {'rows':>5} {'median':>7} {'p90':>8} {'bias':>7} {'in 25%':>7} {'covered':>8}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What one figure of the benchmark has to be: between ``least`` and ``most``."""

    kind: str
    figure: str
    least: float = 0.0
    most: float = math.inf

    def met(self, value: float) -> bool:
        return self.least <= value <= self.most

    @property
    def text(self) -> str:
        if not self.least:
            return f"at most {self.most:.0%}"
        upper = f" to {self.most:.0%}" if math.isfinite(self.most) else ""
        return f"{self.least:.0%}{upper or ' or more'}"


TARGETS = (
    Target(kind="tpot", figure="median", most=0.10),
    Target(kind="throughput", figure="median", most=0.10),
    Target(kind="ttft_unloaded", figure="median", most=0.25),
    Target(kind="tpot", figure="within_25", least=0.80),
    *(
        Target(kind=kind, figure="covered", least=0.75, most=0.88)
        for kind in ("tpot", "throughput", "ttft_unloaded", "ttft")
    ),
)
_FIGURES = {"median": "median error", "within_25": "rows within 25 %", "covered": "rows covered"}

Figures = Mapping[str, Mapping[str, float]]


def figures(pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """Errors and coverage of these rows, by quantity and regime."""
    covered = coverage(pairs)
    return {
        kind: {**summary(values), "covered": statistics.mean(covered[kind])}
        for kind, values in misses(pairs).items()
    }


def line(name: str, found: Mapping[str, float]) -> str:
    """One row of a table."""
    covered = f"{found['covered']:8.1%}" if "covered" in found else f"{'-':>8}"
    return (
        f"  {name[:32]:32} {found['rows']:5} {found['median']:7.1%} {found['p90']:8.1%} "
        f"{found['bias']:+7.1%} {found['within_25']:7.1%} {covered}"
    )


def by(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> dict[str, list[Pair]]:
    """Rows by what ``key`` says of them, the most rows first."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(key(pair), []).append(pair)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def print_table(title: str, found: Figures, kinds: Iterable[str] = NAMES) -> None:
    """All quantities of the same rows."""
    print(f"\n{title}\n{HEAD}")
    for kind in kinds:
        if kind in found:
            print(line(NAMES[kind], found[kind]))


def print_parts(title: str, parts: Mapping[str, list[Pair]]) -> None:
    """TPOT and throughput of each part."""
    named = {name: figures(pairs) for name, pairs in parts.items()}
    for kind in ("tpot", "throughput"):
        print(f"\n{NAMES[kind]} by {title}\n{HEAD}")
        for name, found in named.items():
            if kind in found:
                print(line(name, found[kind]))


def verdicts(found: Figures) -> Iterable[str]:
    """One line for each target."""
    for target in TARGETS:
        value = found[target.kind][target.figure]
        said = "met" if target.met(value) else "MISSED"
        what = f"{NAMES[target.kind]}, {_FIGURES[target.figure]}"
        yield f"{what}: {value:.1%} (target {target.text}): {said}"


def compare(tool: str, pairs: Sequence[Pair]) -> None:
    """Both on the rows that the other tool answers."""
    found, reasons = answers(tool, pairs)
    if found:
        ours = figures([pair for pair, _ in found])
        theirs = {kind: summary(values) for kind, values in misses_of(found).items()}
        print_table(f"Ours, on the {len(found)} of {len(pairs)} rows that {tool} answers", ours)
        print_table(f"{tool} {found[0][1].version}, on the same rows", theirs)
    print(f"\nNo answer for {len(pairs) - len(found)} rows:")
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}")


def main() -> None:
    """Print the tables and the targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--second-opinion",
        type=int,
        metavar="N",
        nargs="?",
        const=100,
        help="rows, 100 if not said",
    )
    rows = parser.parse_args().second_opinion
    start = time.perf_counter()
    pairs = held_out()
    if rows is not None:
        compare(AICONFIGURATOR, stratified(pairs, rows))
        return
    found = figures(pairs)
    print_table("All rows, held out by group", found)
    print_parts("GPU type", by(pairs, lambda pair: pair[0].entry["gpu"]))
    print_parts("model", by(pairs, lambda pair: pair[0].entry["model"]))
    measured = [pair for pair in pairs if not pair[0].entry.get("throughput_derived")]
    kinds = [kind for kind in NAMES if "ttft" not in kind]
    print_table("Rows whose throughput was measured, not derived", figures(measured), kinds)
    print()
    for said in verdicts(found):
        print(said)
    print(f"{len(pairs)} rows in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
