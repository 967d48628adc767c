"""What servers were seen to do over some time, as their metrics have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Observations by size.

    ``counts[i]`` of them are above ``edges[i - 1]`` (0 for the first) and at most ``edges[i]``; the
    last edge is infinite. ``total`` is their exact sum. Counts are no whole numbers where
    Prometheus extrapolated them.

    Raises:
        ValueError: edges do not rise to infinity, or there are not as many counts.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    def __post_init__(self) -> None:
        """Check the edges."""
        if not self.edges or self.edges[-1] != math.inf or len(self.edges) != len(self.counts):
            raise ValueError("a histogram's edges end with infinity, one for each count")
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError("a histogram's edges rise")

    @property
    def count(self) -> float:
        """How many observations there are."""
        return math.fsum(self.counts)

    @property
    def mean(self) -> float | None:
        """Their exact mean; None where there are none."""
        count = self.count
        return self.total / count if count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A gauge over the time: mean and largest value, of ``samples`` that were taken."""

    mean: float
    largest: float
    samples: int


NOTHING = Gauge(mean=0.0, largest=0.0, samples=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedEngine:
    """One engine: requests that ran and waited, and the share of its KV cache in use.

    ``kv_cache_tokens`` is the size of the cache where the server says it.
    """

    name: str
    running: Gauge = NOTHING
    waiting: Gauge = NOTHING
    kv_cache_usage: Gauge = NOTHING
    kv_cache_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What all engines counted together.

    ``finished`` are requests by reason, lengths are in tokens, latencies in seconds; ``None`` where
    this version of vLLM does not count it. ``step_tokens`` are tokens of a step of an engine.
    """

    finished: Mapping[str, float]
    prompt_tokens: Histogram
    output_tokens: Histogram
    ttft: Histogram | None = None
    itl: Histogram | None = None
    e2e: Histogram | None = None
    queue: Histogram | None = None
    step_tokens: Histogram | None = None
    preemptions: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    drafts: float | None = None

    @property
    def requests(self) -> float:
        """Requests that ended, for whatever reason."""
        return math.fsum(self.finished.values())

    @property
    def prefix_hit_rate(self) -> float | None:
        """Share of prompt tokens that the prefix cache had; None where none were looked up."""
        if not self.prefix_queries:
            return None
        return min(1.0, (self.prefix_hits or 0.0) / self.prefix_queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All servers of one model together, over ``seconds``.

    ``requests_per_second`` is the arrival rate over the time, ``peak_requests_per_second`` the
    highest over ``peak_seconds`` of it. ``in_system`` are requests that run or wait, over all
    engines; ``engines_now`` of them serve at the end of the time. ``longest_prompt`` and
    ``longest_output`` are tokens that no request exceeded, where something counted them exactly.
    ``cache_config`` are the labels of ``vllm:cache_config_info``, ``engine_info`` what the plugin
    says of each engine (GPU, settings), where it is installed.
    ``served_from`` is the model as the server was given it.
    """

    source: str
    kind: str  # "server" or "prometheus"
    model: str
    seconds: float
    since_start: bool
    engines: tuple[ObservedEngine, ...]
    counts: Counts
    requests_per_second: float
    peak_requests_per_second: float
    peak_seconds: float
    in_system: Gauge
    engines_now: int
    longest_prompt: int | None = None
    longest_output: int | None = None
    cache_config: Mapping[str, str] = field(default_factory=dict)
    engine_info: tuple[Mapping[str, str], ...] = ()
    max_model_len: int | None = None
    vllm_version: str | None = None
    served_from: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFinding:
    """Something about the load that is not as it should be, or is worth to know.

    ``severity`` is ``warning`` or ``info``. ``evidence`` are the figures it is seen from.
    """

    id: str
    severity: str
    message: str
    fix: str
    evidence: Mapping[str, Any]
