"""Constants of latency from measurements: least squares in logarithms, held by a prior.

Residuals are log(predicted / measured) of the time per output token, the output throughput and
the unloaded time to the first token. What is far off counts less (soft L1), and each constant is
pulled to where it was: by one unit of residual per ``tolerance`` in its logarithm. Solved by
Levenberg and Marquardt's method, in plain Python: a few to thirty constants, up to some thousand
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vllm_advisor.sizing.steady_state import Served, Station, closed_loop, open_loop
from vllm_advisor.types.latency import LatencyConstants

UNLOADED = 4  # requests at once, up to which TTFT is a prefill and little else
_LIMITED = 0.2  # waiting per running, from which on TPOT and TTFT say little of the engine
_WEIGHTS = {"tpot": 3.0, "throughput": 1.8, "ttft": 1.8}
_ROBUST = 0.5  # residuals from here on count linearly
_FAR = 3.0  # a residual says nothing more beyond this
_STEP = 1e-4  # in the logarithm of a constant, for its derivative
_ROUNDS = 25
_ENOUGH = 1e-5  # share by which a round has to lower the cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measurement: the engine, its load, and what was seen, in seconds and tokens per second.

    One of ``concurrency`` and ``requests_per_second`` is given, for one of ``engines`` equal
    engines; ``tokens_per_second`` is of all. ``weight`` makes up for many rows of one run.
    Requests of one length that start together end together (``in_step``), and so do those that
    follow them: TTFT of such a closed loop is a wait for all their prompts, however few they are.
    """

    station: Station
    engines: int = 1
    concurrency: float | None = None
    requests_per_second: float | None = None
    tpot: float | None = None
    ttft: float | None = None
    tokens_per_second: float | None = None
    weight: float = 1.0
    in_step: bool = False

    def served(self, constants: LatencyConstants) -> Served:
        """What these constants say of it."""
        station = replace(self.station, constants=constants)
        if self.requests_per_second is not None:
            return open_loop(station, self.requests_per_second)
        return closed_loop(station, self.concurrency or 1.0)

    def misses(self, constants: LatencyConstants) -> dict[str, float]:
        """log(predicted / measured) of what was measured."""
        served = self.served(constants)
        pairs = {
            "tpot": (served.tpot, self.tpot),
            "throughput": (served.tokens_per_second * self.engines, self.tokens_per_second),
            "ttft": (served.ttft, self.ttft),
        }
        return {name: math.log(a / b) for name, (a, b) in pairs.items() if b}


def refit(
    start: LatencyConstants,
    observations: Sequence[Observation],
    tolerance: Mapping[str, float],
) -> LatencyConstants:
    """Constants that fit the observations best.

    Args:
        start: where they start, and the prior's centre.
        observations: what was measured.
        tolerance: the constants that may change, each with its prior's width in its logarithm.
    """
    names = list(tolerance)
    origin = [math.log(getattr(start, name)) for name in names]
    widths = [tolerance[name] for name in names]

    def at(point: Sequence[float]) -> LatencyConstants:
        values = {n: math.exp(v) for n, v in zip(names, point, strict=True)}
        return replace(start, **values)

    def cost_of(residuals: Sequence[float], point: Sequence[float]) -> float:
        prior = sum(((p - o) / w) ** 2 for p, o, w in zip(point, origin, widths, strict=True))
        return prior + sum(_soft(r) for r in residuals)

    here, damping = list(origin), 1e-2
    residuals = _residuals(at(here), observations)
    cost = cost_of(residuals, here)
    for _ in range(_ROUNDS):
        columns = []
        for index in range(len(names)):
            moved = list(here)
            moved[index] += _STEP
            there = _residuals(at(moved), observations)
            columns.append([(a - b) / _STEP for a, b in zip(there, residuals, strict=True)])
        matrix, vector = _normal(columns, residuals, here, origin, widths)
        gained = False
        while damping < 1e6:
            step = _solve(matrix, vector, damping)
            tried = [p - s for p, s in zip(here, step, strict=True)]
            found = _residuals(at(tried), observations)
            lower = cost_of(found, tried)
            if lower < cost:
                gained = (cost - lower) / cost > _ENOUGH
                here, residuals, cost = tried, found, lower
                damping /= 5
                break
            damping *= 5
        if not gained:
            break
    return at(here)


def _residuals(constants: LatencyConstants, observations: Sequence[Observation]) -> list[float]:
    found = []
    for one in observations:
        served = one.served(constants)
        limited = served.waiting > _LIMITED * served.running or served.saturated
        unloaded = one.concurrency is not None and one.concurrency * one.engines <= UNLOADED
        for name, miss in one.misses(constants).items():
            weight = _WEIGHTS[name] * one.weight * (0.1 if limited else 1.0)
            if name == "ttft" and (not unloaded or one.in_step):
                continue
            found.append(weight * max(-_FAR, min(_FAR, miss)))
    return found


def _soft(residual: float) -> float:
    """Soft L1: squared where it is small, linear where it is large."""
    return 2 * _ROBUST**2 * (math.sqrt(1 + (residual / _ROBUST) ** 2) - 1)


def _normal(
    columns: list[list[float]],
    residuals: Sequence[float],
    here: Sequence[float],
    origin: Sequence[float],
    widths: Sequence[float],
) -> tuple[list[list[float]], list[float]]:
    """Normal equations of the weighted residuals and of the prior."""
    weights = [1 / math.sqrt(1 + (r / _ROBUST) ** 2) for r in residuals]
    weighted = [[w * v for w, v in zip(weights, column, strict=True)] for column in columns]
    size = range(len(columns))
    matrix = [[_dot(weighted[i], columns[j]) if j <= i else 0.0 for j in size] for i in size]
    for i in size:
        for j in range(i):
            matrix[j][i] = matrix[i][j]
        matrix[i][i] += 1 / widths[i] ** 2
    vector = [_dot(weighted[i], residuals) + (here[i] - origin[i]) / widths[i] ** 2 for i in size]
    return matrix, vector


def _solve(matrix: list[list[float]], vector: list[float], damping: float) -> list[float]:
    """Cholesky's method on the damped matrix, which is positive definite."""
    size = len(vector)
    lower = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            value = matrix[i][j] * (1 + damping if i == j else 1)
            value -= sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = math.sqrt(value) if i == j else value / lower[j][j]
    forward: list[float] = []
    for i in range(size):
        rest = vector[i] - sum(lower[i][k] * forward[k] for k in range(i))
        forward.append(rest / lower[i][i])
    solution = [0.0] * size
    for i in reversed(range(size)):
        rest = forward[i] - sum(lower[k][i] * solution[k] for k in range(i + 1, size))
        solution[i] = rest / lower[i][i]
    return solution


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
