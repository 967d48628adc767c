"""The scheduler of a replay, step by step, by hand: a step takes a second unless it says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replay_stations import station

from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.sizing.replay import kv_capacity, replay
from vllm_advisor.sizing.replay_engine import Engine
from vllm_advisor.sizing.replay_sequence import Elsewhere
from vllm_advisor.sizing.replay_tally import Histogram, Tally
from vllm_advisor.types.replay import Distribution, ReplayRequest


def served(
    *requests: tuple[float, int, int],
    seats: int = 100,
    budget: int = 1000,
    kv_tokens: int = 10_000,
    delay: float = 0.0,
    users: int | None = None,
) -> Engine:
    engine = Engine(
        lambda *_: 1.0,
        [ReplayRequest(*request) for request in requests],
        seats=seats,
        budget=budget,
        kv_tokens=kv_tokens,
        delay=delay,
        users=users,
    )
    engine.run()
    return engine


def test_one_request() -> None:
    # 0 to 1: its prompt and the first token; then a second for each of the other four.
    engine = served((0.0, 100, 5))
    assert engine.times == [(0.0, 1.0, 5.0)]
    assert engine.tally.itl.count == 4
    assert engine.tally.kv_most == 104  # the last token is never computed with
    assert engine.tally.steps == 5


def test_the_delay_comes_before_the_first_step() -> None:
    assert served((3.0, 100, 2), delay=0.25).times == [(3.0, 4.25, 5.25)]


def test_an_answer_of_one_token_ends_with_its_prompt() -> None:
    engine = served((0.0, 100, 1))
    assert engine.times == [(0.0, 1.0, 1.0)]
    assert engine.tally.itl.count == 0


def test_a_prompt_is_read_in_chunks_of_the_budget() -> None:
    # 400 + 400 + 200: three steps.
    assert served((0.0, 1000, 2), budget=400).times == [(0.0, 3.0, 4.0)]


def test_running_requests_come_before_prompts() -> None:
    # The first runs from 1 on and takes 1 of 100 tokens, so the second needs 99 + 99 + 2.
    first, second = served((0.0, 100, 9), (0.5, 200, 2), budget=100).times
    assert first == (0.0, 1.0, 9.0)
    assert second == (0.5, 4.0, 5.0)


def test_small_prompts_share_a_step() -> None:
    assert [
        times[1] for times in served((0.0, 30, 1), (0.0, 60, 1), (0.0, 20, 1), budget=100).times
    ] == [
        1.0,
        1.0,
        2.0,  # 10 of 20 fitted the first step
    ]


def test_a_request_that_arrives_in_a_step_waits_for_its_end() -> None:
    assert served((0.0, 10, 50), (2.3, 10, 2)).times[1] == (2.3, 4.0, 5.0)


def test_no_more_than_max_num_seqs_run() -> None:
    # Places are free at 3, where the first two end.
    engine = served((0.0, 10, 3), (0.0, 10, 3), (0.0, 10, 3), seats=2)
    assert [times[1] for times in engine.times] == [1.0, 1.0, 4.0]
    assert engine.tally.running_most == 2
    assert engine.tally.waiting_seconds == 3.0


def test_a_prompt_waits_until_the_cache_holds_all_of_it() -> None:
    # 60 + 60 are more than 100: the second is read once the first has ended, at 4.
    assert [times[1] for times in served((0.0, 60, 4), (0.0, 60, 4), kv_tokens=100).times] == [
        1.0,
        5.0,
    ]


def test_a_full_cache_preempts_the_latest() -> None:
    # Both read 40 in the first second: 80 of 85. After 2 more seconds there are 84, and another
    # step needs 86: the second gives up its 42 with 3 tokens generated. The first ends at 10. The
    # second reads 43 tokens from 10 to 11, which makes its 4th token, and has its 10th at 17.
    engine = served((0.0, 40, 10), (0.0, 40, 10), kv_tokens=85)
    assert engine.times == [(0.0, 1.0, 10.0), (0.0, 1.0, 17.0)]
    assert engine.tally.preemptions == 1
    assert engine.tally.itl.count == 18
    assert engine.tally.kv_most == 84


def test_a_preempted_request_comes_before_those_that_wait() -> None:
    # As above; the third would fit from 4 on, but waits behind the second until 10.
    engine = served((0.0, 40, 10), (0.0, 40, 10), (0.5, 30, 1), kv_tokens=85)
    assert engine.times[1:] == [(0.0, 1.0, 17.0), (0.5, 11.0, 11.0)]


def test_a_prompt_that_is_read_is_preempted_before_what_generates() -> None:
    # At 1 the second gets room for all of its 55: 19 + 1 + 55 are 75 of 76. It reads 19 in a step.
    # The step from 3 needs 21 + 1 + 55, before its last 17 are read; it begins again once the
    # first has ended.
    engine = served((0.0, 19, 30), (0.5, 55, 2), budget=20, kv_tokens=76)
    assert engine.tally.preemptions == 1
    assert engine.times[0] == (0.0, 1.0, 30.0)
    assert engine.times[1][1] == 33.0  # from 30: 20 + 20 + 15


def test_a_closed_loop_follows_at_once() -> None:
    engine = served(*[(7.0, 10, 3)] * 4, users=2, delay=0.5)
    # Two from 0.5 to 3.5; the next two are seen half a second after that.
    assert engine.times == [(0.0, 1.5, 3.5), (0.0, 1.5, 3.5), (3.5, 5.0, 7.0), (3.5, 5.0, 7.0)]


def test_cached_tokens_are_not_read_but_the_last() -> None:
    seen = []

    def seconds(_: float, __: float, tokens: float, pairs: float, ___: float) -> float:
        seen.append((tokens, pairs))
        return 1.0

    for cached in (60, 100):
        Engine(
            seconds,
            [ReplayRequest(0.0, 100, 1, cached)],
            seats=1,
            budget=1000,
            kv_tokens=1000,
            delay=0.0,
        ).run()
    # 40 tokens that see 60 and half of their own, on average; then only the last.
    assert seen == [(40, 80.0), (1, 99.5)]


@pytest.mark.parametrize("longest_run", [1, 1000])
def test_prompts_of_other_engines_come_when_they_are_due(longest_run: int) -> None:
    # 25 tokens a second in chunks of 50. Two steps of a second: 50 are due, and the third takes
    # 1.5 s; 37.5 + 25 are due before the fifth, which leaves 12.5 + 37.5 for the sixth.
    engine = Engine(
        lambda *asked: 1.0 + asked[4] / 100,
        [ReplayRequest(0.0, 100, 6)],
        seats=1,
        budget=1000,
        kv_tokens=1000,
        delay=0.0,
        longest_run=longest_run,
        elsewhere=Elsewhere(25.0, 50.0),
    )
    engine.run()
    assert engine.times == [(0.0, 1.0, 1.0 + 1.0 + 1.5 + 1.0 + 1.5 + 1.5)]
    assert engine.tally.itl.count == 5


def test_steps_at_once_are_steps_one_by_one() -> None:
    engine = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
    load = [
        ReplayRequest(index * 0.31, 500 + 37 * (index % 9), 50 + 70 * (index % 7))
        for index in range(200)
    ]
    at_once, single = replay(engine, load), replay(engine, load, longest_run=1)
    assert single.steps > 3_000
    for name in ("ttft", "tpot", "e2e"):
        for part in ("mean", "p50", "p95"):
            a, b = (getattr(getattr(r, name), part) for r in (at_once, single))
            assert a == pytest.approx(b, rel=0.005)
    assert at_once.kv_use.mean == pytest.approx(single.kv_use.mean, rel=0.005)
    assert at_once.seconds == pytest.approx(single.seconds, rel=0.005)


def test_requests_come_back_in_the_order_they_were_given() -> None:
    engine = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
    seen = replay(engine, [ReplayRequest(9.0, 100, 2), ReplayRequest(0.0, 100, 7)], engines=2)
    assert [one.arrival for one in seen.requests] == [9.0, 0.0]
    assert seen.output_tokens == 9


def test_stages_of_a_pipeline_take_requests_in_turn() -> None:
    engine = replace(station("qwen3-32b", "h100-sxm", 2, 1000, 300), stages=2)
    seen = replay(engine, [ReplayRequest(0.0, 1000, 300)] * 2)
    alone = replay(engine, [ReplayRequest(0.0, 1000, 300)])
    assert seen.requests[0] == seen.requests[1] == alone.requests[0]


def test_the_queue_grows_where_more_arrives_than_is_served() -> None:
    engine = station("qwen3-32b", "h100-sxm", 2, 1000, 300)
    calm, busy = (
        replay(engine, [ReplayRequest(index / rate, 1000, 300) for index in range(1500)])
        for rate in (4, 12)
    )
    assert not calm.unstable
    assert busy.unstable


def test_a_queue_that_grows_by_chance_is_no_growth() -> None:
    tally = Tally()
    tally.waiting_at_half, tally.waiting_at_last = 10, 72  # 2 x sqrt(2000 / 2) = 63.2
    assert not tally.grew(2000)
    tally.waiting_at_last = 74
    assert tally.grew(2000)


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        (ReplayRequest(0.0, 0, 5), InputError, "request 0 has no meaning"),
        (ReplayRequest(float("inf"), 5, 5), InputError, "request 0 has no meaning"),
        (ReplayRequest(2e9, 5, 5), InputError, "request 0 arrives 2e.09 seconds"),
        (ReplayRequest(0.0, 10**6, 5), InfeasibleError, "a request of 1,000,005 tokens"),
    ],
)
def test_requests_that_cannot_be(
    request_: ReplayRequest, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        replay(station("qwen3-32b", "h100-sxm", 2, 1000, 300), [request_])


def test_the_cache_holds_mean_requests_unless_told() -> None:
    engine = replace(station("qwen3-32b", "h100-sxm", 2, 1000, 300), held=10.5)
    assert kv_capacity(engine) == 12_075  # 10.5 x (1000 + 300 / 2)


def test_no_request_is_an_error() -> None:
    with pytest.raises(InputError, match="no request"):
        replay(station("qwen3-32b", "h100-sxm", 2, 1000, 300), [])


def test_percentiles_are_by_nearest_rank() -> None:
    found = Distribution.of([float(value) for value in range(1, 21)])
    assert found == Distribution(mean=10.5, p50=10.0, p90=18.0, p95=19.0, p99=20.0)
    assert Distribution.of([]) is None


def test_a_histogram_is_right_to_its_bins() -> None:
    histogram = Histogram()
    assert histogram.distribution() is None
    for value in range(1, 21):
        histogram.add(value / 100, 5)
    found = histogram.distribution()
    assert found is not None
    assert found.mean == pytest.approx(0.105)
    assert (found.p50, found.p90, found.p95, found.p99) == pytest.approx(
        (0.10, 0.18, 0.19, 0.20), rel=0.0026
    )
