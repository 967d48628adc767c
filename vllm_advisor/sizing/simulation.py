"""A load made up and replayed: the tails that the steady state has no formula for."""

from __future__ import annotations

from vllm_advisor.errors import InputError
from vllm_advisor.sizing.arrivals import SEED, Lengths, closed, poisson
from vllm_advisor.sizing.replay import replay
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.types.replay import Replayed

REQUESTS = 2000
_START = 0.1  # of the requests, while the engine fills


def simulate(
    station: Station,
    *,
    prompt: Lengths,
    output: Lengths,
    requests_per_second: float | None = None,
    concurrency: int | None = None,
    requests: int = REQUESTS,
    engines: int = 1,
    cached_share: float = 0.0,
    kv_tokens: int | None = None,
    seed: int = SEED,
) -> Replayed:
    """Requests of given lengths at a rate, or so many at once.

    The 95th percentiles are ``ttft.p95``, ``itl.p95`` and ``e2e.p95`` of what is returned. A tenth
    of the requests, and in a closed loop those that start together, are replayed but left out of
    these: nobody had come before them.

    Args:
        station: one engine; its own lengths are not read but for ``kv_tokens``.
        prompt: tokens of prompts.
        output: tokens of answers.
        requests_per_second: arriving at random, at all engines together, or
        concurrency: requests in all engines at all times.
        requests: how many are replayed.
        engines: equal ones, which get the requests in turn.
        cached_share: of each prompt, what prefix caching finds, 0 to 1.
        kv_tokens: tokens that the KV cache of one engine holds; what ``station.held`` requests of
            mean length take unless given.
        seed: another one draws other requests.

    Raises:
        InputError: not exactly one of the loads is given, or there are no requests.
        InfeasibleError: a request is longer than the KV cache.
    """
    if (requests_per_second is None) == (concurrency is None):
        raise InputError(
            "a load is a rate or a concurrency",
            where="requests_per_second",
            fix="give one of requests_per_second and concurrency",
        )
    start = int(requests * _START)
    if requests_per_second is not None:
        load = poisson(
            requests_per_second, prompt, output, requests, cached_share=cached_share, seed=seed
        )
    else:
        load = closed(prompt, output, requests, cached_share=cached_share, seed=seed)
        start = max(start, min(concurrency or 0, requests // 2))
    return replay(
        station,
        load,
        engines=engines,
        concurrency=concurrency,
        kv_tokens=kv_tokens,
        warm_up=start,
    )
