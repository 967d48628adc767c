"""Lengths and times from histograms: what lies between the edges of their buckets.

vLLM counts lengths in buckets of 1, 2, 5, 10, 20, 50, ... tokens
(vllm:0.33.0:vllm/v1/metrics/loggers.py#build_1_2_5_buckets) and adds up their exact sum. Between
the edges the cumulative share is taken to be the monotone cubic through the counts, over the
logarithm of the size (Fritsch and Butland, "A method for constructing local monotone piecewise
cubic interpolants", 1984). It ends in the last bucket, or begins in the first, where its mean is
the exact one, if any place there makes it so. ``benchmarks/accuracy_observe.py`` says how far the
percentiles of real traces are from what this makes of their counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from vllm_advisor.types.observation import Histogram

_STEPS = 16  # of a bucket, in sums over it
_HALVINGS = 50
_NARROWEST = 1e-3  # of a bucket's width, that the curve may be left with


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A percentile: the point, and the edges of the bucket that it surely lies in."""

    point: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The cumulative share of observations over the logarithm of their size.

    ``shares[i]`` of ``count`` observations are at most ``exp(logs[i])``; ``slopes`` are the curve's
    there. Every observation is above ``smallest`` and at most ``largest``, the edges of the first
    and the last bucket that has any; the curve may begin later and end earlier.
    """

    logs: tuple[float, ...]
    shares: tuple[float, ...]
    slopes: tuple[float, ...]
    count: float
    smallest: float
    largest: float

    def quantile(self, share: float) -> Quantile:
        """The size that ``share`` of the observations do not exceed."""
        i = next(i for i, top in enumerate(self.shares[1:]) if top >= share or top == 1.0)
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._share(i, middle) < share else (low, middle)
        last = i + 2 == len(self.logs)
        return Quantile(
            point=math.exp(self.logs[i] + (self.logs[i + 1] - self.logs[i]) * high),
            low=math.exp(self.logs[i]) if i else self.smallest,
            high=self.largest if last else math.exp(self.logs[i + 1]),
        )

    def share_up_to(self, size: float) -> float:
        """The share of observations of at most that size."""
        if size <= math.exp(self.logs[0]):
            return 0.0
        for i, (low, high) in enumerate(pairwise(self.logs)):
            if math.log(size) < high:
                return self._share(i, (math.log(size) - low) / (high - low))
        return 1.0

    def mean_up_to(self, size: float = math.inf) -> float:
        """Mean of the observations up to a size, by the curve; 0 where there are none."""
        share, total = 0.0, 0.0
        for i, (low, high) in enumerate(pairwise(self.logs)):
            before = self.shares[i]
            for step in range(1, _STEPS + 1):
                middle = math.exp(low + (high - low) * (step - 0.5) / _STEPS)
                if middle > size:
                    return total / share if share else 0.0
                after = self._share(i, step / _STEPS)
                total += (after - before) * middle
                share += after - before
                before = after
        return total / share if share else 0.0

    def _share(self, i: int, t: float) -> float:
        """The cubic of bucket ``i``, at ``t`` from 0 to 1."""
        width = self.logs[i + 1] - self.logs[i]
        return (
            (2 * t**3 - 3 * t**2 + 1) * self.shares[i]
            + (t**3 - 2 * t**2 + t) * width * self.slopes[i]
            + (3 * t**2 - 2 * t**3) * self.shares[i + 1]
            + (t**3 - t**2) * width * self.slopes[i + 1]
        )


def shape_of(histogram: Histogram, *, most: float | None = None, exact_sum: bool = True) -> Shape:
    """What the counts and the sum say together.

    Args:
        histogram: with at least one observation.
        most: no observation is larger, as is known otherwise.
        exact_sum: the sum bounds the largest; that of a part of a split does not.

    Raises:
        ValueError: there are no observations.
    """
    largest = largest_of(histogram, most=most, exact_sum=exact_sum)
    edges, shares, below = [], [], 0.0
    first = next(i for i, count in enumerate(histogram.counts) if count > 0)
    for edge, count in zip(histogram.edges[first:], histogram.counts[first:], strict=True):
        below += count
        edges.append(min(edge, largest))
        shares.append(min(1.0, below / histogram.count))
        if edge >= largest:
            break
    shares[-1] = 1.0
    start = histogram.edges[first - 1] if first else edges[0] / 2
    edges, shares = [start, *edges], [0.0, *shares]
    logs = list(map(math.log, edges))
    whole = Shape(
        logs=tuple(logs),
        shares=tuple(shares),
        slopes=_slopes(logs, shares),
        count=histogram.count,
        smallest=histogram.edges[first - 1] if first else 0.0,
        largest=largest,
    )
    return _at_mean(whole, histogram.total / histogram.count)


def largest_of(histogram: Histogram, *, most: float | None = None, exact_sum: bool = True) -> float:
    """What no observation exceeds: its bucket's edge, what is known otherwise, what the sum allows.

    In a last bucket without an edge, of which nothing else is known, it is the next of 1, 2, 5, 10.

    Raises:
        ValueError: there are no observations.
    """
    filled = [i for i, count in enumerate(histogram.counts) if count > 0]
    if not filled:
        raise ValueError("no observations")
    lower = [0.0, *histogram.edges[:-1]]
    top = filled[-1]
    low, edge = lower[top], histogram.edges[top]
    if most is not None and most > low:
        edge = min(edge, most)
    elif math.isinf(edge):
        edge = _next_edge(low)
    if not exact_sum or any(count != round(count) for count in histogram.counts):
        return edge  # parts of observations say nothing of a single one
    # As large as the sum allows, if all others are as small as their buckets.
    alone = histogram.total - math.fsum(lower[i] * histogram.counts[i] for i in filled) + low
    return min(edge, alone) if alone > low else edge


def split(histogram: Histogram, shape: Shape, at: float) -> tuple[Histogram, Histogram]:
    """The observations up to a size, and those above it; their sums add up to the exact one."""
    low_counts, high_counts = [], []
    lower = [0.0, *histogram.edges[:-1]]
    for low, edge, count in zip(lower, histogram.edges, histogram.counts, strict=True):
        if edge <= at or low >= at:
            part = 1.0 if edge <= at else 0.0
        else:
            begin, middle, end = (shape.share_up_to(x) for x in (low, at, edge))
            part = (middle - begin) / (end - begin) if end > begin else 1.0
        low_counts.append(count * part)
        high_counts.append(count * (1 - part))
    below = math.fsum(low_counts) * shape.mean_up_to(at)
    whole = shape.count * shape.mean_up_to()
    low_total = histogram.total * below / whole if whole else 0.0
    return (
        Histogram(edges=histogram.edges, counts=tuple(low_counts), total=low_total),
        Histogram(
            edges=histogram.edges, counts=tuple(high_counts), total=histogram.total - low_total
        ),
    )


def _at_mean(whole: Shape, mean: float) -> Shape:
    """The curve that ends earlier or begins later, so that its mean is the exact one, if it can."""
    too_high = whole.mean_up_to() > mean
    at = -1 if too_high else 0
    kept, moved = (whole.logs[-2], whole.logs[-1]) if too_high else (whole.logs[1], whole.logs[0])

    def reaching(log: float) -> Shape:
        edges = list(whole.logs)
        edges[at] = log
        return replace(whole, logs=tuple(edges), slopes=_slopes(edges, whole.shares))

    nearest = kept + (moved - kept) * _NARROWEST
    if (reaching(nearest).mean_up_to() > mean) is too_high:
        return whole
    near, far = nearest, moved
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        beyond = (reaching(middle).mean_up_to() > mean) is too_high
        near, far = (near, middle) if beyond else (middle, far)
    return reaching(far)


def _slopes(logs: Sequence[float], shares: Sequence[float]) -> tuple[float, ...]:
    """Slopes with which the curve never falls: weighted harmonic means of the sides'."""
    widths = [b - a for a, b in pairwise(logs)]
    rises = [(b - a) / w for (a, b), w in zip(pairwise(shares), widths, strict=True)]
    inner = []
    for (left, right), (rise, next_rise) in zip(pairwise(widths), pairwise(rises), strict=True):
        if rise <= 0 or next_rise <= 0:
            inner.append(0.0)
            continue
        first, second = 2 * right + left, right + 2 * left
        inner.append((first + second) / (first / rise + second / next_rise))
    return (rises[0], *inner, rises[-1])


def _next_edge(edge: float) -> float:
    if edge <= 0:
        return 1.0
    base = 10.0 ** math.floor(math.log10(edge))
    return next(step * base for step in (1.0, 2.0, 5.0, 10.0, 20.0) if step * base > edge * 1.001)
