"""Loads that are made up: the same for the same seed, with the lengths that were asked for."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest
from replay_stations import station

from vllm_advisor.errors import InputError
from vllm_advisor.sizing.arrivals import around, closed, mean_tokens, poisson
from vllm_advisor.sizing.simulation import simulate
from vllm_advisor.types.workload import TokenDistribution

WIDE = TokenDistribution(p50=800, p95=2400, max=4000)


def test_another_rate_brings_the_same_requests_closer_together() -> None:
    slow, fast = poisson(1.0, WIDE, 300, 500), poisson(4.0, WIDE, 300, 500)
    assert [one[1:] for one in slow] == [one[1:] for one in fast]
    assert [one.arrival / 4 for one in slow] == pytest.approx([one.arrival for one in fast])
    assert poisson(1.0, WIDE, 300, 500) == slow
    assert poisson(1.0, WIDE, 300, 500, seed=1) != slow


def test_requests_arrive_at_the_rate() -> None:
    load = poisson(5.0, 100, 100, 20_000)
    assert load[-1].arrival == pytest.approx(4000, rel=0.03)
    gaps = [b.arrival - a.arrival for a, b in pairwise(load)]
    assert fmean(gap**2 for gap in gaps) == pytest.approx(2 / 25, rel=0.05)  # exponential


def test_lengths_have_the_percentiles_that_were_asked_for() -> None:
    prompts = sorted(one.prompt for one in closed(WIDE, 100, 20_000))
    assert prompts[10_000] == pytest.approx(800, rel=0.03)
    assert prompts[19_000] == pytest.approx(2400, rel=0.04)
    assert prompts[-1] == 4000
    assert fmean(prompts) == pytest.approx(mean_tokens(WIDE), rel=0.02)


@pytest.mark.parametrize("mean", [1, 2, 300, 100_000])
def test_lengths_around_a_mean_have_it(mean: int) -> None:
    lengths = around(mean, 10 * mean)
    assert mean_tokens(lengths) == pytest.approx(mean, rel=0.02)
    assert lengths.p50 <= lengths.p95 <= lengths.max


def test_lengths_around_a_mean_end_where_they_must() -> None:
    assert max(one.prompt for one in closed(around(1000, 1100), 5, 1000)) == 1100


def test_lengths_that_do_not_vary() -> None:
    same = TokenDistribution(p50=7, p95=7, max=7)
    assert {one.prompt for one in closed(same, 5, 50)} == {7}
    assert (mean_tokens(same), mean_tokens(9)) == (7.0, 9.0)


def test_a_share_of_each_prompt_is_cached() -> None:
    assert [one.cached for one in poisson(1.0, 1000, 5, 2, cached_share=0.25)] == [250, 250]


def test_a_simulation_has_one_load() -> None:
    engine = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
    for load in ({}, {"requests_per_second": 1.0, "concurrency": 2}):
        with pytest.raises(InputError, match="a rate or a concurrency"):
            simulate(engine, prompt=1000, output=300, **load)


def test_the_start_together_is_left_out() -> None:
    engine = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
    seen = simulate(
        engine, prompt=around(1000, 9000), output=around(300, 9000), concurrency=64, requests=1280
    )
    slowest = max(one.ttft for one in seen.requests)
    assert slowest > 3.0  # the last of 64 prompts that start together
    assert seen.ttft.p99 < 0.5
