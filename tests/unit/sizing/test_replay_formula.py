"""The steady state against a replay of the same load."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replay_stations import STATIONS, saturation, station

from vllm_advisor.sizing.arrivals import around, poisson
from vllm_advisor.sizing.replay import replay
from vllm_advisor.sizing.simulation import simulate
from vllm_advisor.sizing.steady_state import Station, closed_loop, open_loop

PROMPT, OUTPUT = 1000, 300
PROMPTS, OUTPUTS = around(PROMPT, 9000), around(OUTPUT, 9000)


@pytest.fixture(params=STATIONS, ids=lambda found: found[0])
def engine(request: pytest.FixtureRequest) -> Station:
    return station(*request.param, PROMPT, OUTPUT)


def test_a_request_that_is_alone_has_the_floor(engine: Station) -> None:
    rate = 0.01 * saturation(engine)
    seen = replay(engine, poisson(rate, PROMPT, OUTPUT, 400))
    assert seen.ttft.p50 == pytest.approx(engine.floor, rel=0.05)
    assert min(one.ttft for one in seen.requests) == pytest.approx(engine.floor, rel=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_load_at_random(engine: Station, share: float) -> None:
    rate = share * saturation(engine)
    seen = simulate(engine, prompt=PROMPTS, output=OUTPUTS, requests_per_second=rate, requests=4000)
    assert seen.tpot is not None
    assert seen.steady_requests_per_second == pytest.approx(rate, rel=0.03)
    assert seen.tpot.mean == pytest.approx(open_loop(engine, rate).tpot, rel=0.06)
    assert not seen.unstable


def test_engines_that_share_experts_meet_the_prompts_of_the_others_now_and_then() -> None:
    group = station(
        "qwen3-235b-a22b",
        "h200-sxm",
        8,
        PROMPT,
        OUTPUT,
        data_parallel_size=8,
        enable_expert_parallel=True,
    )
    calm = replay(group, poisson(0.01 * saturation(group), PROMPT, OUTPUT, 200))
    assert calm.ttft.p50 == pytest.approx(group.floor, rel=0.05)
    busy = simulate(group, prompt=PROMPTS, output=OUTPUTS, concurrency=64)
    alone = replace(group, work=replace(group.work, engines=1))
    assert busy.tpot is not None
    assert busy.tpot.mean == pytest.approx(closed_loop(group, 64).tpot, rel=0.1)
    assert busy.tpot.mean > 1.1 * closed_loop(alone, 64).tpot


@pytest.mark.parametrize("users", [1, 8, 64])
def test_a_closed_loop(engine: Station, users: int) -> None:
    seen = simulate(
        engine,
        prompt=PROMPTS,
        output=OUTPUTS,
        concurrency=users,
        requests=max(300, 20 * users),
    )
    formula = closed_loop(engine, users)
    assert seen.tpot is not None
    assert seen.steady_requests_per_second == pytest.approx(formula.requests_per_second, rel=0.1)
    assert seen.tpot.mean == pytest.approx(formula.tpot, rel=0.1)
    assert seen.running.mean == pytest.approx(users, rel=0.1)
