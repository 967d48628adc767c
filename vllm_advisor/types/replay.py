"""A replayed load: its requests, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ReplayRequest(NamedTuple):
    """One request: seconds of its arrival, and its tokens.

    ``cached`` are those of the prompt that prefix caching finds. A tuple, because a replay has
    many.
    """

    arrival: float
    prompt: int
    output: int
    cached: int = 0


class RequestTimes(NamedTuple):
    """What became of one request, in seconds; ``tpot`` is its mean time between two tokens.

    ``tpot`` is ``None`` where the answer has one token.
    """

    arrival: float
    ttft: float
    tpot: float | None
    e2e: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Percentiles by nearest rank, and the mean, in the unit of what is distributed."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution | None:
        """Of single values; ``None`` of none."""
        if not values:
            return None
        ranked = sorted(values)
        p50, p90, p95, p99 = (ranked[-(-len(ranked) * p // 100) - 1] for p in PERCENTS)
        return cls(mean=sum(ranked) / len(ranked), p50=p50, p90=p90, p95=p95, p99=p99)


PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How much of something there was: the mean over the simulated time, and the most."""

    mean: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What replayed requests went through; times in seconds.

    ``requests`` in the order in which they were given. ``tpot`` is distributed over requests,
    ``itl`` over the times between two tokens of all of them; both are ``None`` where no answer has
    two tokens. ``running`` and ``waiting`` are requests of all engines, their ``max`` the sum of
    what each had at most. ``kv_use`` is a share of the KV cache, its ``max`` that of the fullest
    engine. ``seconds`` go from the first arrival to the last token. ``steady_*`` leave the first
    and the last tenth of the finished requests out. ``unstable``: requests arrived faster than they
    were served, so waiting times only say how long the load went on.
    """

    requests: tuple[RequestTimes, ...]
    ttft: Distribution
    tpot: Distribution | None
    itl: Distribution | None
    e2e: Distribution
    kv_use: Level
    running: Level
    waiting: Level
    preemptions: int
    steps: int
    prompt_tokens: int
    output_tokens: int
    seconds: float
    requests_per_second: float
    output_tokens_per_second: float
    steady_requests_per_second: float
    unstable: bool
