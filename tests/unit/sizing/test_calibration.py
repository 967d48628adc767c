"""Constants of a server that is known: measurements are made from them, and they are found again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from vllm_advisor.api.timed_engine import TimedEngine, find_engine
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.calibration import (
    calibrated,
    free_constants,
    median_error,
    misses_by_quantity,
    narrowed,
)
from vllm_advisor.sizing.refit import Observation, refit
from vllm_advisor.types.latency import CALIBRATED_BOUNDS, LatencyConstants, Range

FIT = load_latency()
START = FIT.constants
# A server with a slower memory and a slower host than most.
TRUTH = replace(
    START,
    weight_read=START.weight_read * 0.85,
    cache_read=START.cache_read * 0.9,
    matrix=START.matrix * 0.85,
    layer=START.layer * 1.2,
    step=START.step * 1.2,
    request=START.request * 1.5,
)
SWEEP = tuple((c, length) for length in (128, 1000, 4000) for c in (1, 2, 4, 8, 16, 32, 64))


@pytest.fixture(scope="module")
def engine() -> TimedEngine:
    return find_engine(
        "qwen3-8b", gpu="h100-sxm", gpu_count=1, vllm_version=None, fit=None, engine_args={}
    )


def measured(
    engine: TimedEngine, loads: Iterable[tuple[float, int]], truth: LatencyConstants = TRUTH
) -> list[Observation]:
    """What these constants say of a closed loop, as if it had been measured."""
    found = []
    for concurrency, prompt in loads:
        station = engine.station(prompt, 256)
        one = Observation(station=station, concurrency=concurrency)
        served = one.served(truth)
        found.append(
            replace(
                one,
                tpot=served.tpot,
                ttft=served.ttft,
                tokens_per_second=served.tokens_per_second,
            )
        )
    return found


def errors(constants: LatencyConstants, observations: list[Observation]) -> dict[str, float]:
    found = misses_by_quantity(constants, observations)
    return {name: median_error(misses) for name, misses in found.items()}


def test_a_sweep_finds_the_server(engine: TimedEngine) -> None:
    observations = measured(engine, SWEEP)
    before = errors(START, observations)
    after = errors(calibrated(START, observations).constants, observations)
    assert min(before.values()) > 0.1
    assert max(after.values()) < 0.02


def test_what_was_not_measured_is_predicted_as_well(engine: TimedEngine) -> None:
    found = calibrated(START, measured(engine, SWEEP)).constants
    others = measured(engine, [(3, 2000), (24, 600), (48, 8000)])
    assert max(errors(found, others).values()) < 0.04


@pytest.mark.parametrize("load", [(1, 1000), (16, 1000), (32, 300)])
def test_one_measurement_closes_less_than_half_of_its_gap(
    engine: TimedEngine, load: tuple[float, int]
) -> None:
    observations = measured(engine, [load])
    found = calibrated(START, observations).constants
    before, after = errors(START, observations), errors(found, observations)
    assert 0.5 * before["tpot"] < after["tpot"] < 0.9 * before["tpot"]
    for name, value in found.as_dict().items():
        assert abs(math.log(value / getattr(START, name))) < 0.25, name


def test_more_measurements_move_more(engine: TimedEngine) -> None:
    held = measured(engine, [(6, 1500)])
    found = [
        errors(calibrated(START, measured(engine, SWEEP[:n])).constants, held)["tpot"]
        for n in (1, 4, 7, 21)
    ]
    assert found == sorted(found, reverse=True)


def test_nothing_moves_where_all_is_as_expected(engine: TimedEngine) -> None:
    found = calibrated(START, measured(engine, SWEEP, START)).constants
    for name, value in found.as_dict().items():
        assert value == pytest.approx(getattr(START, name), rel=1e-3)


def test_free_is_what_was_measured(engine: TimedEngine) -> None:
    alone, *_, busy = measured(engine, [(1, 1000), (64, 4000)])
    # one request alone reads little KV cache, and 64 hide the first token behind their queue
    assert set(free_constants(START, [alone])) >= {"weight_read", "matrix", "layer", "request"}
    assert "request" not in free_constants(START, [busy])
    assert "matrix" not in free_constants(START, [busy])
    assert "cache_read" in free_constants(START, [busy])
    assert "request" not in free_constants(START, [replace(alone, ttft=None)])
    only_first = replace(alone, tpot=None, tokens_per_second=None)
    assert "cache_read" not in free_constants(START, [only_first])


def test_the_first_tokens_of_requests_in_step_say_nothing_of_a_prefill(engine: TimedEngine) -> None:
    few = measured(engine, [(4, 1000)], truth=START)
    waited = [replace(one, ttft=3 * (one.ttft or 0.0)) for one in few]
    tolerance = {"request": 1.0}
    assert refit(START, waited, tolerance).request > 1.1 * START.request
    alike = [replace(one, in_step=True) for one in waited]
    assert refit(START, alike, tolerance).request == pytest.approx(START.request)


def test_experts_only_where_there_are_some(engine: TimedEngine) -> None:
    assert "expert_read" not in free_constants(START, measured(engine, SWEEP))
    moe = find_engine(
        "qwen3-30b-a3b", gpu="h100-sxm", gpu_count=1, vllm_version=None, fit=None, engine_args={}
    )
    truth = replace(START, expert_read=START.expert_read * 0.8)
    observations = measured(moe, SWEEP, truth)
    assert "expert_read" in free_constants(START, observations)
    assert max(errors(calibrated(START, observations).constants, observations).values()) < 0.02


def test_the_rate_that_arrives_says_nothing(engine: TimedEngine) -> None:
    station = engine.station(500, 200)
    one = Observation(station=station, requests_per_second=2.0, tokens_per_second=400.0)
    assert free_constants(START, [one]) == ()
    assert calibrated(START, [one]).constants == START
    assert misses_by_quantity(START, [one]) == {}


def test_no_constant_leaves_what_is_possible(engine: TimedEngine) -> None:
    """Faster than the data sheet: a server of another GPU than was said."""
    observations = [
        replace(one, tpot=one.tpot / 4, tokens_per_second=one.tokens_per_second * 4)
        for one in measured(engine, SWEEP * 4, START)
        if one.tpot and one.tokens_per_second
    ]
    found = calibrated(START, observations)
    assert "weight_read" in found.at_limit
    assert found.constants.weight_read == 1.0
    for name, (low, high) in CALIBRATED_BOUNDS.items():
        assert low <= getattr(found.constants, name) <= high


BEFORE = {"tpot": Range(low=0.8, high=1.25), "ttft": Range(low=0.6, high=2.0)}


def test_few_measurements_only_widen_a_range() -> None:
    assert narrowed(BEFORE, {"tpot": [0.0] * 7}, 3) == BEFORE
    found = narrowed(BEFORE, {"tpot": [-0.5, 0.0, 0.0]}, 3)
    assert found["tpot"].high == pytest.approx(math.exp(0.5), abs=1e-3)  # measured is the larger
    assert found["tpot"].low == 0.8
    assert found["ttft"] == BEFORE["ttft"]


def test_many_measurements_narrow_a_range_as_far_as_they_agree() -> None:
    exact = narrowed(BEFORE, {"tpot": [0.0] * 8}, 3)["tpot"]
    # eight count half: the geometric mean of 0.8 and 1, of 1.25 and 1
    assert exact.low == pytest.approx(math.sqrt(0.8), abs=2e-3)
    assert exact.high == pytest.approx(math.sqrt(1.25), abs=2e-3)
    more = narrowed(BEFORE, {"tpot": [0.0] * 24}, 3)["tpot"]
    assert exact.low < more.low < 1 < more.high < exact.high


def test_no_range_is_narrower_than_what_is_seen() -> None:
    spread = [0.3 * (-1) ** i for i in range(40)]
    found = narrowed(BEFORE, {"tpot": spread}, 3)["tpot"]
    assert found.low <= math.exp(-0.3)
    assert found.high >= math.exp(0.3)


def test_a_quantity_without_a_range_stays_without() -> None:
    assert narrowed(BEFORE, {"ttft_limited": [1.0] * 9}, 1) == BEFORE
