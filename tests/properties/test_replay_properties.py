"""What has to hold of any replayed load."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from hypothesis import given, settings
from hypothesis import strategies as st
from replay_stations import station

from vllm_advisor.sizing.replay import replay
from vllm_advisor.sizing.replay_engine import Engine
from vllm_advisor.sizing.step_function import step_function
from vllm_advisor.types.replay import ReplayRequest

STATION = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
SECONDS = step_function(STATION.work, STATION.constants)
TOKENS = st.integers(1, 400)
LOADS = st.lists(
    st.builds(ReplayRequest, st.floats(0, 3), TOKENS, st.integers(1, 60), st.integers(0, 400)),
    min_size=1,
    max_size=25,
).map(lambda load: sorted(load, key=lambda one: one.arrival))
BUDGETS, SEATS, CACHES = st.integers(1, 300), st.integers(1, 20), st.integers(460, 2000)


class Watched:
    """A step function that keeps what it was asked about."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float, float, float]] = []

    def __call__(self, *asked: float) -> float:
        self.steps.append(asked[:4])
        return SECONDS(*asked)


def watched(
    load: list[ReplayRequest], budget: int, seats: int, cache: int, users: int | None = None
) -> tuple[Engine, Watched]:
    """Taken one by one, so that each call is a step."""
    steps = Watched()
    engine = Engine(
        steps,
        load,
        seats=seats,
        budget=budget,
        kv_tokens=cache,
        delay=0.02,
        users=users,
        longest_run=1,
    )
    engine.run()
    return engine, steps


@settings(max_examples=150)
@given(LOADS, BUDGETS, SEATS, CACHES, st.none() | st.integers(1, 30))
def test_no_limit_is_passed_and_no_token_lost(
    load: list[ReplayRequest], budget: int, seats: int, cache: int, users: int | None
) -> None:
    engine, steps = watched(load, budget, seats, cache, users)
    tally = engine.tally
    assert tally.steps == len(steps.steps)
    for sequences, _, prompt_tokens, _ in steps.steps:
        assert 1 <= sequences + prompt_tokens <= budget
        assert sequences <= seats
    assert tally.running_most <= seats
    assert tally.kv_most <= cache
    assert tally.itl.count + len(load) == sum(one.output for one in load)
    if not tally.preemptions:
        read = sum(one.prompt - min(one.cached, one.prompt - 1) for one in load)
        assert sum(prompt_tokens for _, _, prompt_tokens, _ in steps.steps) == read
        context = sum(one.prompt + made for one in load for made in range(1, one.output))
        assert round(sum(n * seen for n, seen, _, _ in steps.steps)) == context


@settings(max_examples=100)
@given(LOADS, BUDGETS, SEATS, CACHES)
def test_nobody_is_served_before_time(
    load: list[ReplayRequest], budget: int, seats: int, cache: int
) -> None:
    engine, _ = watched(load, budget, seats, cache)
    least = SECONDS(1, 1, 0, 0.0, 0.0)
    for one, (arrival, first, last) in zip(load, engine.times, strict=True):
        new = one.prompt - min(one.cached, one.prompt - 1)
        floor = max(new // budget, 1) * SECONDS(0, 0.0, min(new, budget), 0.0, 0.0)
        assert arrival == one.arrival
        assert first - arrival >= 0.02 + floor * (1 - 1e-9)
        assert last - first >= (one.output - 1) * least * (1 - 1e-9)


@settings(max_examples=60)
@given(LOADS, BUDGETS, SEATS, CACHES)
def test_equal_prompts_get_their_first_tokens_in_order(
    load: list[ReplayRequest], budget: int, seats: int, cache: int
) -> None:
    equal = [one._replace(prompt=300, cached=0) for one in load]
    engine, _ = watched(equal, budget, seats, cache)
    firsts = [first for _, first, _ in engine.times]
    assert all(before <= after for before, after in pairwise(firsts))


@settings(max_examples=60)
@given(LOADS, BUDGETS, SEATS, CACHES)
def test_steps_at_once_come_to_the_same(
    load: list[ReplayRequest], budget: int, seats: int, cache: int
) -> None:
    single, _ = watched(load, budget, seats, cache)
    at_once = Engine(SECONDS, load, seats=seats, budget=budget, kv_tokens=cache, delay=0.02)
    at_once.run()
    # An arrival may fall on the other side of a step's end: then a request is a step or two later.
    slowest = SECONDS(seats, 460, budget, 460, 0.0)
    for a, b in zip(single.times, at_once.times, strict=True):
        assert abs(a[2] - b[2]) <= 0.005 * (b[2] - b[0]) + 3 * slowest


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 4), st.integers(1, 3000), st.integers(1, 300)),
        min_size=20,
        max_size=60,
    ),
    st.floats(2, 20),
)
def test_more_load_is_no_faster(gaps: list[tuple[float, int, int]], factor: float) -> None:
    clock, load = 0.0, []
    for gap, prompt, output in gaps:
        clock += gap
        load.append(ReplayRequest(clock, prompt, output))
    slow = replay(STATION, load)
    fast = replay(STATION, [one._replace(arrival=one.arrival / factor) for one in load])
    # But for where in a step of the others a request arrives.
    step = max(one.tpot or 0.0 for one in slow.requests)
    assert fast.ttft.mean >= slow.ttft.mean - step
    assert (
        fmean(one.e2e for one in fast.requests)
        >= fmean(one.e2e for one in slow.requests) * (1 - 1e-3) - 2 * step
    )
