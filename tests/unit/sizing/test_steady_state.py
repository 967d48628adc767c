"""Closed and open loops over steps of round numbers, computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from vllm_advisor.sizing.steady_state import Served, Station, closed_loop, open_loop, regime_of
from vllm_advisor.sizing.step_work import CacheReads, StepWork, WeightFormat
from vllm_advisor.types.latency import LatencyConstants, Regime

# All efficiencies are 1, and only what a test names takes time.
FREE = LatencyConstants(
    weight_read=1.0,
    expert_read=1.0,
    cache_read=1.0,
    matrix=1.0,
    expert_matrix=1.0,
    expert_fp4=1.0,
    expert_int4=1.0,
    expert_spread=1.0,
    int4_read=1.0,
    attention=1.0,
    int4_blackwell=1.0,
    nvlink=1.0,
    pcie=1.0,
    all_reduce=0.0,
    layer=0.0,
    expert_layer=0.0,
    expert_layer_fp4=0.0,
    expert_layer_int4=0.0,
    prompt_layer=0.0,
    step=10e-3,
    sequence=0.0,
    prefill_overlap=1.0,
    request=20e-3,
    prompt_token=0.0,
    start_wave=0.0,
)
# Nothing is read: a step is 10 ms and 0.1 ms for each token.
WORK = StepWork(
    weight_bytes=0,
    expert_bytes=0,
    dense_format=WeightFormat.PLAIN,
    expert_format=WeightFormat.PLAIN,
    experts=0,
    experts_per_token=0,
    dense_seconds=0.1e-3,
    head_seconds=0.0,
    expert_seconds=0.0,
    cache=(),
    state_bytes=0,
    attention_flops=0.0,
    window_flops=(),
    decode_flops=0.0,
    layers=1,
    expert_layers=0,
    reduced_bytes=0,
    reduces=0,
    ranks=1,
    engines=1,
    bandwidth=1e12,
    link=1e11,
    nvlink=True,
    blackwell=False,
    peak=1e15,
)
STATION = Station(
    work=WORK,
    constants=FREE,
    prompt=100,
    output=101,
    max_num_seqs=10,
    held=math.inf,
    max_num_batched_tokens=1000,
)


def test_one_request_alone() -> None:
    served = closed_loop(STATION, 1)
    # A step with one sequence: 10 ms + 0.1 ms, and no prompts of others.
    assert served.tpot == pytest.approx(10.1e-3)
    # Its prompt: 20 ms + a step of 100 tokens, 10 + 10 ms, from which 10 ms have no sequence.
    assert served.ttft_floor == pytest.approx(40e-3)
    # Beside a running sequence: 20 ms + (10.1 + 10) ms, and the step of its first token.
    assert served.ttft == pytest.approx(20e-3 + 20.1e-3 + 10.1e-3)
    # 101 tokens in 50.2 ms + 100 x 10.1 ms.
    assert served.tokens_per_second == pytest.approx(101 / 1.0602)
    assert served.requests_per_second == pytest.approx(1 / 1.0602)
    assert (served.running, served.waiting, served.queue) == (1, 0, 0)


def test_the_text_of_a_prompt_is_made_into_tokens_before_the_first_step() -> None:
    # 100 tokens of 0.05 ms, whatever of them is cached.
    reads = replace(FREE, prompt_token=0.05e-3)
    for station in (STATION, replace(STATION, cached=90)):
        slower = replace(station, constants=reads)
        assert slower.floor == pytest.approx(station.floor + 5e-3)
        assert closed_loop(slower, 1).ttft == pytest.approx(closed_loop(station, 1).ttft + 5e-3)
        assert closed_loop(slower, 10).tpot == pytest.approx(closed_loop(station, 10).tpot)
        assert open_loop(slower, 0.1).ttft == pytest.approx(
            open_loop(station, 0.1).ttft + 5e-3, rel=1e-3
        )


def test_prompts_of_others_slow_each_token() -> None:
    # A prompt token takes 0.1 ms; per step 9 x 100 / 101 of them: 0.891 ms on 10 + 1 ms.
    served = closed_loop(STATION, 10)
    assert served.tpot == pytest.approx(11e-3 + 900 / 101 * 0.1e-3)
    # 70 % of them: 0.624 ms.
    less = replace(STATION, constants=replace(FREE, prefill_overlap=0.7))
    assert closed_loop(less, 10).tpot == pytest.approx(11e-3 + 0.7 * 900 / 101 * 0.1e-3)


def test_a_prompt_waits_for_those_before_it() -> None:
    served = closed_loop(STATION, 10)
    # 10 ms of each of 9 others, in 10 x 10 ms + 101 x 11.891 ms: busy 0.0692 of the time.
    busy = 90 / (100 + 101 * 11.89109)
    assert served.busy == pytest.approx(busy, rel=1e-5)
    # M/D/1: 10 ms x 0.0692 / (2 x 0.9308).
    assert served.queue == pytest.approx(10e-3 * busy / (2 * (1 - busy)), rel=1e-5)
    assert served.ttft == pytest.approx(20e-3 + (11e-3 + 10e-3) + 11e-3 + served.queue)


def test_requests_beyond_the_places_wait() -> None:
    ten, fifteen = closed_loop(STATION, 10), closed_loop(STATION, 15)
    assert (fifteen.running, fifteen.waiting) == (10, 5)
    assert fifteen.tpot == ten.tpot
    assert fifteen.tokens_per_second == ten.tokens_per_second
    # Little: 5 wait for half a round of the 10 that run.
    assert fifteen.ttft == pytest.approx(ten.ttft + 5 / 10 / ten.requests_per_second * 10)
    assert ten.regime is Regime.OVERHEAD_BOUND
    assert fifteen.regime is Regime.SEQ_LIMITED
    assert closed_loop(replace(STATION, held=8.0), 15).regime is Regime.KV_LIMITED


def test_the_start_of_all_at_once() -> None:
    # A tenth of the requests waits for half of the 9 others' prompts: 0.1 x 4.5 x 10 ms.
    wave = replace(STATION, constants=replace(FREE, start_wave=0.1))
    steady, served = closed_loop(STATION, 10), closed_loop(wave, 10)
    assert served.ttft == pytest.approx(steady.ttft + 4.5e-3)
    assert served.ttft_steady == pytest.approx(steady.ttft)


def test_prompts_alone_are_read_one_after_the_other() -> None:
    # One token each: 10 requests are 1,000 tokens, one full step of 10 + 100 ms, 11 ms each. No
    # more than 10 requests in 110 ms.
    short = replace(STATION, output=1)
    served = closed_loop(short, 10)
    assert short.least_prefill_seconds == pytest.approx(11e-3)
    assert served.requests_per_second == pytest.approx(10 / 110e-3)
    assert served.ttft == pytest.approx(110e-3)
    # An engine of two stages reads two at a time.
    assert closed_loop(replace(short, stages=2), 10).requests_per_second > 10 / 110e-3


def test_a_long_prompt_takes_several_steps() -> None:
    # 2,500 tokens in steps of 1,000: 2.5 x 10 ms + 2,500 x 0.1 ms.
    long = replace(STATION, prompt=2500)
    assert long.prefill_seconds(0) == pytest.approx(25e-3 + 250e-3)
    assert long.floor == pytest.approx(20e-3 + 275e-3)
    # Beside 4 running requests 996 fit: 2,500 / 996 x 10.4 ms + 250 ms.
    assert long.prefill_seconds(4) == pytest.approx(2500 / 996 * 10.4e-3 + 250e-3)
    assert long.full_step(4) == pytest.approx(10e-3 + 0.1)


def test_a_cached_prefix_is_not_read_again() -> None:
    warm = replace(STATION, cached=60)
    # 40 tokens are left: 10 + 4 ms.
    assert warm.floor == pytest.approx(20e-3 + 14e-3)
    assert closed_loop(warm, 10).tpot == pytest.approx(11e-3 + 9 * 40 / 101 * 0.1e-3)


def test_the_share_of_steps_with_a_prompt() -> None:
    # 5 requests x 100 / 101 prompt tokens per step, in chunks of 100: 5 of 101 steps.
    assert STATION.prompt_share(5) == pytest.approx(5 / 101)
    assert replace(STATION, output=2).prompt_share(5) == 1.0


def test_stages_split_the_running_requests() -> None:
    two = replace(STATION, stages=2, max_num_seqs=20)
    # 20 running: 10 in each stage, with the prompts of 9 others.
    assert two.tpot(20) == pytest.approx(STATION.tpot(10))
    # One alone is in one stage at a time, and no faster.
    assert two.tpot(1) == pytest.approx(10.1e-3)


def test_context_is_the_prompt_and_half_of_the_output() -> None:
    reads = replace(WORK, cache=(CacheReads(window=None, bytes_per_token=1e6),))
    # 150.5 tokens x 1 MB at 1 TB/s = 0.1505 ms, longer than 0.1 ms of arithmetic.
    assert replace(STATION, work=reads).step(1).memory == pytest.approx(0.1505e-3)


def test_few_arrivals() -> None:
    served = open_loop(STATION, 0.5)
    # Half a request per second that stays about 1.1 s.
    assert served.running == pytest.approx(0.5 * (served.ttft + 101 * served.tpot), rel=1e-4)
    assert 0.5 < served.running < 0.6
    # A request sees itself and half of another: steps of 10 ms and 0.1 ms for each of 1.5 requests,
    # and half of a prompt of 10 ms over 101 tokens.
    assert served.tpot == pytest.approx(STATION.random_tpot(served.running))
    assert served.tpot == pytest.approx(10e-3 + 1.55 * 0.1e-3 + 0.55 * 10e-3 / 101, rel=1e-3)
    assert served.tokens_per_second == 0.5 * 101
    # A full step is 10 ms and 0.1 ms for each of 1,000 tokens; a prompt of 100 fills a tenth of what
    # the 0.55 running requests leave of it: 11 ms every other second.
    each = 100 / 999.45 * 110e-3
    assert served.busy == pytest.approx(each / 2, rel=1e-3)
    # M/D/1, and half a step until one begins.
    wait = served.ttft - 20e-3 - STATION.prefill_seconds(served.running)
    queue = each * (each / 2) / (2 * (1 - each / 2))
    assert wait == pytest.approx(STATION.step(served.running).seconds / 2 + queue, rel=1e-3)
    assert not served.saturated


def test_more_arrivals_than_places() -> None:
    # 10 places of about 1.25 s: 8 requests per second at most.
    served = open_loop(STATION, 20)
    assert served.saturated
    assert served.running == 10
    most = 10 / (served.ttft + 101 * served.tpot)
    assert served.requests_per_second == pytest.approx(most)
    assert 7 < most < 9
    assert not open_loop(STATION, 7).saturated


def test_percentiles_of_the_first_token() -> None:
    served = replace(closed_loop(STATION, 10), ttft_steady=1.0, queue=0.1, busy=0.4)
    # 40 % wait: half of the requests do not.
    assert served.ttft_at(0.5) == pytest.approx(0.9)
    # One of ten waits longer than 0.25 x ln(0.4 / 0.1) = 0.3466 s.
    assert served.ttft_at(0.9) == pytest.approx(0.9 + 0.25 * math.log(4))


def test_what_binds() -> None:
    # 10 ms of overhead against 1 ms of arithmetic.
    assert regime_of(STATION, 10, waiting=False) is Regime.OVERHEAD_BOUND
    quick = replace(STATION, constants=replace(FREE, step=0.1e-3))
    assert regime_of(quick, 5, waiting=False) is Regime.COMPUTE_BOUND
    reads = replace(quick, work=replace(WORK, weight_bytes=5_000_000_000))  # 5 ms
    assert regime_of(reads, 5, waiting=False) is Regime.BANDWIDTH_BOUND
    # Prompts of 9 others over 2 tokens: 450 tokens x 0.1 ms on 1.1 ms.
    assert regime_of(replace(quick, output=2), 10, waiting=False) is Regime.PREFILL_BOUND


def test_the_time_of_a_whole_request() -> None:
    served = closed_loop(STATION, 10)
    assert served.stay == pytest.approx(served.ttft + 100 * served.tpot)
    none = Served(
        running=0.0,
        waiting=0.0,
        tpot=0.0,
        ttft=0.0,
        ttft_steady=0.0,
        ttft_floor=0.0,
        tokens_per_second=0.0,
        requests_per_second=0.0,
        regime=Regime.OVERHEAD_BOUND,
    )
    assert none.stay == 0.0
