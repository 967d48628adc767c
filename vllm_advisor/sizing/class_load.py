"""A class of requests as it reaches the engines: lengths, what is cached, how much they vary."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.sizing.arrivals import mean_tokens
from vllm_advisor.types.workload import RequestClass, TokenDistribution

TAIL = 0.05  # beyond the 95th percentile
_P95 = 1.645  # standard deviations of a normal distribution
_PEAK = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoad:
    """One class as it reaches the engines: ``rate`` per second over all of them, or ``at_once``.

    ``cached`` is the share of its prompts that prefix caching finds on average, ``cached_p95``
    tokens are found of a prompt at the 95th percentile: of the first request about a document only
    what all share, where those are more than one in twenty. ``spread`` is the prompt's variance
    over its mean squared.
    """

    name: str
    prompt: float
    prompt_p95: float
    output: float
    output_p95: float
    cached: float = 0.0
    cached_p95: float = 0.0
    spread: float = 0.0
    rate: float | None = None
    at_once: float | None = None


def at_peak(running: float) -> int:
    """Requests at once at a peak: two standard deviations of a Poisson number above the mean."""
    return max(1, math.ceil(running + _PEAK * math.sqrt(running)))


def class_load(
    request: RequestClass,
    *,
    prompt: TokenDistribution | None = None,
    prefix_caching: bool = True,
    at_once: float | None = None,
) -> ClassLoad:
    """A class of a workload.

    Args:
        request: the class.
        prompt: its prompts as they reach vLLM, where retrieval or a cut changes them.
        prefix_caching: prompts that were read before are found.
        at_once: requests in the system, where they are known otherwise.
    """
    lengths = prompt or request.prompt_tokens
    mean = mean_tokens(lengths)
    shared = min(float(request.shared_prefix_tokens), mean - 1) if prefix_caching else 0.0
    again = 1 - 1 / max(1.0, request.requests_per_document) if prefix_caching else 0.0
    count = at_once if at_once is not None else request.concurrent_requests
    return ClassLoad(
        name=request.name,
        prompt=mean,
        prompt_p95=float(lengths.p95),
        output=max(1.0, mean_tokens(request.output_tokens)),
        output_p95=float(request.output_tokens.p95),
        cached=(shared + (mean - shared) * again) / mean,
        cached_p95=shared if 1 - again > TAIL + 1e-9 else shared + (lengths.p95 - shared) * again,
        spread=_spread(lengths),
        rate=None if count is not None else request.requests_per_second,
        at_once=None if count is None else float(count),
    )


def _spread(lengths: TokenDistribution) -> float:
    """Variance over mean squared of a log-normal through p50 and p95."""
    sigma = math.log(max(1.0, lengths.p95 / max(1, lengths.p50))) / _P95
    return math.expm1(min(sigma * sigma, 2.0))
