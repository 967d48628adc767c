from __future__ import annotations

import math

import pytest
from fake_metrics import Counted
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError
from vllm_advisor.parse.metrics.levels import cache_tokens, in_system, levels
from vllm_advisor.parse.metrics.samples import models_of, read_samples
from vllm_advisor.parse.metrics.window import counted, growth, histogram


def test_lines_of_the_text_format() -> None:
    text = r"""
# TYPE a counter
a 1
a{x="1",y="with \"quotes\", a comma and \\ and \n"} 2.5e3 1700000000
b:c{} +Inf
 indented 4
a{x=1} 5
no value
d not-a-number
"""
    found = list(read_samples(text))
    assert [(s.name, s.line) for s in found] == [
        ("a", 3), ("a", 4), ("b:c", 5), ("a", 7), ("no", 8), ("d", 9)
    ]  # fmt: skip
    assert found[1].labels == {"x": "1", "y": 'with "quotes", a comma and \\ and \n'}
    assert found[1].value == 2500
    assert found[2].value == math.inf
    assert math.isnan(found[4].value)
    assert models_of(found) == ()


@given(st.text(max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    list(read_samples(text))


def test_growth_between_two_readings() -> None:
    engine = Counted()
    engine.request(100, 10)
    first = list(read_samples(engine.text()))
    engine.request(300, 20, reason="length")
    engine.request(400, 5)
    engine.preemptions, engine.hits = 2, 70
    counts = counted(growth(first, read_samples(engine.text())).samples, where="x")
    assert counts.finished == {"length": 1, "stop": 1}
    assert counts.requests == 2
    assert (counts.prompt_tokens.count, counts.prompt_tokens.total) == (2, 700)
    assert (counts.output_tokens.count, counts.output_tokens.total) == (2, 25)
    assert counts.preemptions == 2
    assert counts.prefix_hit_rate == pytest.approx(70 / 700)
    assert counts.ttft is not None
    assert counts.ttft.mean == pytest.approx(0.2)
    assert counts.itl is not None
    assert counts.itl.count == 19 + 4


def test_a_server_that_started_anew_counts_from_zero() -> None:
    before, after = Counted(), Counted()
    for _ in range(5):
        before.request(100, 10)
    after.request(700, 10)
    grown = growth(read_samples(before.text()), read_samples(after.text()))
    assert grown.restarted
    counts = counted(grown.samples, where="x")
    assert counts.prompt_tokens.count == 1  # the 5 of before are not taken off


def test_engines_are_added_up() -> None:
    first, second = Counted(engine="0", running=3, usage=0.4), Counted(engine="1", running=5)
    first.request(100, 10)
    second.request(3000, 30)
    samples = [*read_samples(first.text()), *read_samples(second.text())]
    counts = counted(samples, where="x")
    assert counts.prompt_tokens.total == 3100
    engines = levels([samples], where="x")
    assert [(e.name, e.running.mean, e.kv_cache_usage.largest) for e in engines] == [
        ("0", 3.0, 0.4),
        ("1", 5.0, 0.0),
    ]
    assert in_system([samples, samples], where="x").mean == 8


def test_names_of_older_versions() -> None:
    engine = Counted(old=True, usage=0.25, hits=50)
    engine.request(100, 10, itl=0.03)
    samples = list(read_samples(engine.text()))
    counts = counted(samples, where="x")
    assert counts.itl is not None
    assert counts.itl.mean == pytest.approx(0.03)
    assert counts.prefix_hit_rate == 0.5
    assert levels([samples], where="x")[0].kv_cache_usage.largest == 0.25


def test_a_name_and_its_predecessor_are_not_added_up() -> None:
    engine = Counted(usage=0.3)
    engine.request(100, 10)
    text = engine.text() + 'vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.3\n'
    assert levels([list(read_samples(text))], where="x")[0].kv_cache_usage.mean == 0.3


def test_the_size_of_the_cache_is_only_what_the_server_calls_tokens() -> None:
    # Blocks times their size are no tokens where layers differ in kind.
    stated = Counted(cache={"kv_cache_size_tokens": "4096", "num_gpu_blocks": "9"})
    assert cache_tokens(read_samples(stated.text()), "0") == 4096
    unstated = Counted(cache={"num_gpu_blocks": "10", "block_size": "16"})
    assert cache_tokens(read_samples(unstated.text()), "0") is None
    none = Counted(cache={"kv_cache_size_tokens": "None"})
    assert cache_tokens(read_samples(none.text()), "0") is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('le="+Inf"', 'le="20000.0"', "no whole histogram"),
        ('le="1.0"', 'le="one"', "has no edge"),
        ("request_prompt_tokens_sum", "request_prompt_tokens_summe", "no whole histogram"),
        ("request_prompt_tokens", "prompt_lengths", "no lengths of requests"),
        ('finished_reason="stop"} 1.0', 'finished_reason="stop"} -1.0', "no measured value"),
    ],
)
def test_metrics_that_contradict_themselves(old: str, new: str, what: str) -> None:
    engine = Counted()
    engine.request(100, 10)
    text = engine.text()
    assert old in text
    with pytest.raises(InputError, match=what):
        counted(read_samples(text.replace(old, new)), where="http://x/metrics")


def test_no_request_means_no_lengths() -> None:
    with pytest.raises(InputError, match="no request ended") as caught:
        counted(read_samples(Counted().text()), where="http://x/metrics")
    assert "--window" in caught.value.fix


def test_buckets_that_prometheus_extrapolated_apart_never_count_below_zero() -> None:
    engine = Counted()
    engine.request(100, 10)
    text = engine.text().replace(
        'vllm:request_prompt_tokens_bucket{engine="0",model_name="tiny",le="200.0"} 1.0',
        'vllm:request_prompt_tokens_bucket{engine="0",model_name="tiny",le="200.0"} 0.97',
    )
    found = histogram(read_samples(text), "prompt_tokens", where="x")
    assert found is not None
    assert min(found.counts) == 0
    assert found.count == pytest.approx(1.0)
