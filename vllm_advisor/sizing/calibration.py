"""Constants of one server, from measurements of it: few of them move, and none of them far alone.

Free is a constant that a measurement depends on: one whose change by a tenth changes a measured
time or throughput by half a percent or more. ``matrix`` and ``request`` need more than that: the
time to the first token of at most four requests at once, since under load both are hidden behind
the waits of a queue.

The prior is the fit that the calibration starts from (:data:`TOLERANCE`): one measurement closes
less than half of the gap that it finds, some twenty nearly all of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vllm_advisor.sizing.refit import UNLOADED, Observation, refit
from vllm_advisor.types.latency import CALIBRATED_BOUNDS, LatencyConstants, Range

# Width of the prior in the logarithm of each constant: the wider, the smaller a part of the times
# it usually is, so that all of them move alike. A request's way through clients, proxies and the
# API server differs most between places.
TOLERANCE = {
    "weight_read": 0.3,
    "expert_read": 0.3,
    "cache_read": 0.4,
    "matrix": 0.6,
    "layer": 0.5,
    "step": 0.5,
    "request": 1.4,
}
ENOUGH_TO_NARROW = 8  # measurements of a quantity, from which its range may become narrower
_NEEDS_FIRST_TOKEN = ("matrix", "request")
_ENDS = (0.001, 1000.0)  # of a range, at the most
_CHANGE = 0.1
_FELT = 0.005
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Refitted:
    """The constants found, which of them were free, and those that stopped at their limit."""

    constants: LatencyConstants
    free: tuple[str, ...]
    at_limit: tuple[str, ...] = ()


def calibrated(start: LatencyConstants, observations: Sequence[Observation]) -> Refitted:
    """Constants that fit the observations and stay near the start.

    Args:
        start: the prior's centre.
        observations: what was measured; at least one.
    """
    free = free_constants(start, observations)
    at_limit: list[str] = []
    while True:
        moving = {name: TOLERANCE[name] for name in free if name not in at_limit}
        found = refit(start, observations, moving) if moving else start
        over = {n: limit for n in moving if (limit := _limit(n, getattr(found, n))) is not None}
        if not over:
            break
        at_limit += over
        start = replace(start, **over)
    rounded = {name: float(f"{getattr(found, name):.{_DIGITS}g}") for name in free}
    return Refitted(constants=replace(found, **rounded), free=free, at_limit=tuple(at_limit))


def _limit(name: str, value: float) -> float | None:
    """The bound that a constant is beyond."""
    low, high = CALIBRATED_BOUNDS[name]
    return low if value < low else high if value > high else None


def free_constants(
    constants: LatencyConstants, observations: Sequence[Observation]
) -> tuple[str, ...]:
    """The constants that these observations say something of."""
    first_token = any(_first_token_counts(one) for one in observations)
    names = [n for n in TOLERANCE if first_token or n not in _NEEDS_FIRST_TOKEN]
    return tuple(n for n in names if any(_felt(one, constants, n) for one in observations))


def _felt(one: Observation, constants: LatencyConstants, name: str) -> bool:
    changed = replace(constants, **{name: getattr(constants, name) * (1 + _CHANGE)})
    before, after = one.misses(constants), one.misses(changed)
    if not _first_token_counts(one):
        before.pop("ttft", None)
    return any(abs(after[key] - miss) >= _FELT for key, miss in before.items())


def _first_token_counts(one: Observation) -> bool:
    return one.ttft is not None and is_unloaded(one)


def is_unloaded(one: Observation) -> bool:
    """So few requests at once that the time to the first token is a prefill and little else."""
    return one.concurrency is not None and one.concurrency * one.engines <= UNLOADED


def misses_by_quantity(
    constants: LatencyConstants, observations: Sequence[Observation]
) -> dict[str, list[float]]:
    """log(predicted / measured) by the quantities that ranges are of.

    ``_limited`` is what requests wait for that find no place; ``_unloaded`` the first token of
    few requests at once. The throughput of what arrives and is served is no prediction.
    """
    found: dict[str, list[float]] = {}
    for one in observations:
        served = one.served(constants)
        for name, miss in one.misses(constants).items():
            if name == "throughput" and one.requests_per_second and not served.saturated:
                continue
            key = name
            if served.waiting > 0 or served.saturated:
                key = f"{name}_limited"
            elif name == "ttft" and is_unloaded(one):
                key = "ttft_unloaded"
            found.setdefault(key, []).append(miss)
    return found


def narrowed(
    ranges: Mapping[str, Range], seen: Mapping[str, Sequence[float]], free: int
) -> dict[str, Range]:
    """The ranges of 80 % of measurements, as far as the residuals support other ones.

    Fewer than eight measurements of a quantity only widen its range, to the 10th and 90th
    percentile of measured / predicted among them. From eight on, both ends are weighted means, in
    logarithms, of the range before and of these percentiles: ``n / (n + 8)`` for what is seen, so
    that eight count half and 24 three quarters. The percentiles are taken further out by
    ``sqrt(n / (n - free))``, because the constants were fitted to the same measurements, and no
    range becomes narrower than they are as seen.

    Args:
        ranges: those before.
        seen: log(predicted / measured) by quantity.
        free: constants that were fitted.
    """
    found = dict(ranges)
    for name, misses in seen.items():
        before, n = ranges.get(name), len(misses)
        if before is None or not n:
            continue
        logs = sorted(-miss for miss in misses)
        low, high = logs[round(0.1 * (n - 1))], logs[round(0.9 * (n - 1))]
        if n < ENOUGH_TO_NARROW:
            ends = math.log(before.low), math.log(before.high)
        else:
            share, wider = n / (n + ENOUGH_TO_NARROW), math.sqrt(n / max(1, n - free))
            ends = (
                share * low * wider + (1 - share) * math.log(before.low),
                share * high * wider + (1 - share) * math.log(before.high),
            )
        found[name] = Range(  # rounded outwards: never narrower than what was seen
            low=max(_ENDS[0], math.floor(math.exp(min(ends[0], low)) * 1000) / 1000),
            high=min(_ENDS[1], math.ceil(math.exp(max(ends[1], high)) * 1000) / 1000),
        )
    return found


def median_error(misses: Sequence[float]) -> float:
    """Median of |predicted / measured - 1|."""
    return statistics.median(abs(math.exp(miss) - 1) for miss in misses)
