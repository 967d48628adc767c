"""What is written down while requests are replayed, and what is made of it in the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vllm_advisor.types.replay import PERCENTS, Distribution

_BINS = 200  # to a factor of e: a bin is 0.5 % wide, so a percentile is right to 0.25 %

_LEAST = 1e-9  # seconds


class Histogram:
    """Times by the logarithm of their length: tokens have millions of them."""

    __slots__ = ("_bins", "_total", "count")

    def __init__(self) -> None:
        self._bins: dict[int, int] = {}
        self._total = 0.0
        self.count = 0

    def add(self, seconds: float, count: int = 1) -> None:
        """As many times of this length."""
        place = math.floor(math.log(max(seconds, _LEAST)) * _BINS)
        self._bins[place] = self._bins.get(place, 0) + count
        self._total += seconds * count
        self.count += count

    def merge(self, other: Histogram) -> None:
        """Add those of another."""
        for place, count in other._bins.items():
            self._bins[place] = self._bins.get(place, 0) + count
        self._total += other._total
        self.count += other.count

    def distribution(self) -> Distribution | None:
        """Percentiles by nearest rank, at the middle of their bins; ``None`` of no times."""
        if not self.count:
            return None
        ranks = [-(-self.count * percent // 100) for percent in PERCENTS]
        found: list[float] = []
        seen = 0
        for place, count in sorted(self._bins.items()):
            seen += count
            while len(found) < len(ranks) and ranks[len(found)] <= seen:
                found.append(math.exp((place + 0.5) / _BINS))
        p50, p90, p95, p99 = found
        return Distribution(mean=self._total / self.count, p50=p50, p90=p90, p95=p95, p99=p99)


class Tally:
    """Sums over the steps of one engine; ``*_seconds`` are amounts times how long they lasted."""

    __slots__ = (
        "itl",
        "kv_most",
        "kv_seconds",
        "preemptions",
        "prompt_steps",
        "read_tokens",
        "running_most",
        "running_seconds",
        "steps",
        "waiting_at_half",
        "waiting_at_last",
        "waiting_most",
        "waiting_seconds",
    )

    def __init__(self) -> None:
        self.itl = Histogram()
        self.kv_seconds = self.running_seconds = self.waiting_seconds = 0.0
        self.kv_most = self.running_most = self.waiting_most = 0
        self.steps = self.preemptions = self.prompt_steps = self.read_tokens = 0
        self.waiting_at_half: int | None = None
        self.waiting_at_last: int | None = None

    def grew(self, requests: int) -> bool:
        """More waited when the last request arrived than halfway, and not by chance.

        Of arrivals at random the number in half of the time varies by its root: a queue that grew
        by more than twice that is one that is not served.
        """
        if self.waiting_at_half is None or self.waiting_at_last is None:
            return False
        return self.waiting_at_last - self.waiting_at_half > 2 * math.sqrt(requests / 2)


def steady_rate(finished: Iterable[float]) -> float:
    """Requests per second between the first and the last tenth of those that finished."""
    times: Sequence[float] = sorted(finished)
    low, high = len(times) // 10, len(times) - 1 - len(times) // 10
    passed = times[high] - times[low] if times else 0.0
    return (high - low) / passed if passed > 0 else 0.0
