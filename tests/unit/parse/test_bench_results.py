"""Result files of benchmarks and snapshots of /metrics, read as measurements, or refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vllm_advisor.errors import AdvisorError, InputError, NotModelledError
from vllm_advisor.parse.bench.results import UnknownResultError, read_results
from vllm_advisor.types.measurement import Measured, Measurement

DATA = Path(__file__).parents[2] / "data" / "bench_results"
CLOSED = next((DATA / "vllm").glob("*concurrency16*"))
OPEN = next((DATA / "vllm").glob("*8.0qps*"))


def read(content: str | bytes | dict[str, Any] | list[Any]) -> Measured:
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    return read_results(content if isinstance(content, bytes) else content.encode(), "f", "f")


def one(content: Any) -> Measurement:
    (found,) = read(content).measurements
    return found


def loaded(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def changed(path: Path, **values: Any) -> dict[str, Any]:
    data = {**loaded(path), **values}
    return {key: value for key, value in data.items() if value is not ...}


def test_vllm_bench_closed_loop() -> None:
    data = loaded(CLOSED)
    found = one(data)
    assert found.concurrency == 16
    assert found.requests_per_second is None
    assert found.prompt_tokens == data["total_input_tokens"] / 160
    assert found.output_tokens == 128
    assert found.tpot == data["mean_tpot_ms"] / 1000
    assert found.ttft == data["mean_ttft_ms"] / 1000
    assert found.tokens_per_second == data["output_throughput"]
    assert found.model == "Qwen/Qwen3-8B"


def test_vllm_bench_open_loop() -> None:
    found = one(loaded(OPEN))
    assert (found.concurrency, found.requests_per_second) == (None, 8.0)


@pytest.mark.parametrize(
    ("served", "expected"),
    [(7.9, (None, 8.0)), (6.0, (20, None))],  # the limit binds where the rate is not reached
)
def test_a_rate_with_a_limit_is_what_was_reached(served: float, expected: tuple[Any, Any]) -> None:
    found = one(changed(OPEN, max_concurrency=20, duration=480 / served))
    assert (found.concurrency, found.requests_per_second) == expected


def test_appended_results_are_several_measurements() -> None:
    text = CLOSED.read_text() + "\n" + OPEN.read_text()
    assert [m.source for m in read(text).measurements] == ["f#1", "f#2"]
    assert len(read([loaded(CLOSED), loaded(OPEN)]).measurements) == 2


def test_without_tpot_the_latency_between_tokens_is_taken() -> None:
    found = one(changed(CLOSED, mean_tpot_ms=..., mean_itl_ms=20.0))
    assert found.tpot == 0.02


def test_answers_of_one_token_have_no_time_per_token() -> None:
    found = one(changed(CLOSED, total_output_tokens=160, mean_tpot_ms=0.0))
    assert found.tpot is None
    assert found.ttft is not None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_concurrency": None}, "all requests were sent at once"),
        ({"completed": 31}, "31 requests, 16 at once, are no steady load"),
        ({"ramp_up_strategy": "linear"}, "its rate rises"),
    ],
)
def test_what_is_no_steady_load_is_left_out_and_said(changes: dict[str, Any], said: str) -> None:
    found = read(changed(CLOSED, **changes))
    assert found.measurements == ()
    assert said in found.notes[0]


def test_speculative_decoding_is_not_modelled() -> None:
    with pytest.raises(NotModelledError, match="speculative"):
        read(changed(CLOSED, spec_decode_num_drafts=10))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"completed": 0}, "completed: 0 is not above zero"),
        ({"completed": True}, "completed: True is no number"),
        ({"duration": math.nan}, "duration: nan is no measured value"),
        ({"total_input_tokens": 0}, "total_input_tokens: 0 is not above zero"),
        ({"total_output_tokens": -5}, "total_output_tokens: -5 is not above zero"),
        ({"total_output_tokens": ...}, "total_output_tokens: it is missing"),
        ({"mean_tpot_ms": -1.0}, "mean_tpot_ms: -1.0 is not above zero"),
        ({"mean_ttft_ms": math.inf}, "mean_ttft_ms: inf is no measured value"),
        ({"mean_ttft_ms": "fast"}, "mean_ttft_ms: 'fast' is no number"),
        ({"output_throughput": 1e300}, "is more than a server can do"),
        ({"total_input_tokens": 10**400}, "a number of that size is more"),
        ({"request_rate": "many"}, "request_rate: 'many' is no number"),
        ({"max_concurrency": [8]}, r"max_concurrency: \[8\] is no number"),
    ],
)
def test_figures_without_meaning(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what) as raised:
        read(changed(CLOSED, **changes))
    assert raised.value.where.startswith("f: ")
    assert raised.value.fix


@pytest.mark.parametrize("total", [5, 10**12])
def test_prompts_of_no_possible_length(total: int) -> None:
    with pytest.raises(InputError, match="tokens per prompt, which is no request"):
        read(changed(CLOSED, total_input_tokens=total))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\x00", "this is no text"),
        (b"hello", "no benchmark's result"),
        (b"{}", "no benchmark that is known"),
        (b'{"a": 1}', "these keys: a"),
        (b"[1, 2]", "no JSON object"),
        (b'{"completed": 1,', "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"completed": ' + b"9" * 5000 + b"}", "number too long"),
    ],
)
def test_what_is_no_result(content: bytes, what: str) -> None:
    with pytest.raises(InputError, match=what) as raised:
        read(content)
    assert raised.value.where
    assert raised.value.fix


def test_a_cut_off_file_says_where() -> None:
    with pytest.raises(InputError) as raised:
        read(CLOSED.read_bytes()[:200])
    assert not isinstance(raised.value, UnknownResultError)
    assert raised.value.where.startswith("f:1:")


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("guidellm-0.2.json", [(1, None), (8, None), (None, 5.0)]),
        ("guidellm-0.5.json", [(2, None), (32, None)]),
    ],
)
def test_guidellm(name: str, loads: list[tuple[Any, Any]]) -> None:
    data = loaded(DATA / name)
    found = read(data).measurements
    assert [(m.concurrency, m.requests_per_second) for m in found] == loads
    metrics = data["benchmarks"][1]["metrics"]
    of = {k: v["successful"]["mean"] for k, v in metrics.items() if k != "request_totals"}
    served = of["requests_per_second"] * of["output_token_count"]
    assert found[1].tokens_per_second == pytest.approx(served)
    # its own time per output token has the wait for the first one in it
    assert found[1].tpot == metrics["inter_token_latency_ms"]["successful"]["mean"] / 1000
    assert found[1].tpot < of["time_per_output_token_ms"] / 1000
    assert found[1].ttft == metrics["time_to_first_token_ms"]["successful"]["mean"] / 1000


def _with_strategy(**strategy: Any) -> dict[str, Any]:
    data = loaded(DATA / "guidellm-0.5.json")
    data["benchmarks"] = data["benchmarks"][:1]
    data["benchmarks"][0]["config"]["strategy"] = strategy
    return data


def test_guidellm_without_streaming_has_no_first_token() -> None:
    data = _with_strategy(type_="concurrent", streams=2)
    for name in ("time_to_first_token_ms", "inter_token_latency_ms"):
        data["benchmarks"][0]["metrics"][name]["successful"] = {"mean": 0.0, "count": 0}
    found = one(data)
    assert (found.ttft, found.tpot) == (None, None)
    assert found.tokens_per_second


def test_guidellm_counts_requests_in_two_places() -> None:
    data = _with_strategy(type_="concurrent", streams=150)
    assert "are no steady load" in read(data).notes[0]
    benchmark = data["benchmarks"][0]
    benchmark["request_totals"] = benchmark["metrics"].pop("request_totals")
    assert "200 requests, 150 at once, are no steady load" in read(data).notes[0]


def test_guidellm_at_full_throughput_is_a_closed_loop() -> None:
    assert one(_with_strategy(type_="throughput", max_concurrency=64)).concurrency == 64
    assert read(_with_strategy(type_="throughput")).measurements == ()


@pytest.mark.parametrize(
    ("strategy", "what"),
    [
        ({"type_": "replay"}, "type_: 'replay' is no load that is understood"),
        ({}, "type_: it is missing"),
        ({"type_": "poisson"}, "rate: it is missing"),
        ({"type_": "concurrent", "streams": 0}, "streams: 0 is not above zero"),
    ],
)
def test_guidellm_loads_that_are_not_known(strategy: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what) as raised:
        read(_with_strategy(**strategy))
    assert "benchmarks[0]" in raised.value.where


def test_guidellm_without_metrics() -> None:
    with pytest.raises(InputError, match="no metrics"):
        read({"benchmarks": [{"results": []}]})


@pytest.mark.parametrize(
    ("name", "concurrency"),
    [("profile_export_genai_perf.json", 8), ("profile_export_aiperf.json", 24)],
)
def test_genai_perf_and_aiperf(name: str, concurrency: float) -> None:
    data = loaded(DATA / name)
    found = one(data)
    assert found.concurrency == concurrency
    assert (found.prompt_tokens, found.output_tokens) == (550.0, 200.0)
    assert found.tpot == pytest.approx(data["inter_token_latency"]["avg"] / 1000)
    assert found.ttft == pytest.approx(data["time_to_first_token"]["avg"] / 1000)
    assert found.tokens_per_second == data["output_token_throughput"]["avg"]


@pytest.mark.parametrize(
    "config",
    [
        {"concurrency": 12, "request_rate": None},
        {"loadgen": {"concurrency": 12}},
        {"perf_analyzer": {"stimulus": {"concurrency": 12}}},
        {"phases": {"profiling": {"concurrency": 12}}},
        {
            "phases": [
                {"name": "warmup", "concurrency": 1},
                {"name": "profiling", "concurrency": 12},
            ]
        },
    ],
)
def test_where_versions_of_genai_perf_write_the_load(config: dict[str, Any]) -> None:
    data = changed(DATA / "profile_export_genai_perf.json", input_config=config)
    assert one(data).concurrency == 12


def test_genai_perf_in_other_units() -> None:
    tokens = {"unit": "ns", "avg": 9_500_000.0}
    data = changed(DATA / "profile_export_genai_perf.json", inter_token_latency=tokens)
    assert one(data).tpot == pytest.approx(0.0095)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"input_config": {}}, "neither a concurrency nor a request_rate"),
        ({"input_config": "none"}, "is no object"),
        ({"output_sequence_length": {"avg": 0}}, "avg: 0 is not above zero"),
        ({"inter_token_latency": {"unit": "minutes", "avg": 1.0}}, "'minutes' is no unit of time"),
        ({"time_to_first_token": {"unit": "s", "avg": 1e9}}, "more than a day"),
    ],
)
def test_genai_perf_without_meaning(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(changed(DATA / "profile_export_genai_perf.json", **changes))


METRICS = (DATA / "metrics.txt").read_text()


def test_metrics_are_means_since_the_start() -> None:
    found = one(METRICS)
    assert found.concurrency == 12
    assert (found.prompt_tokens, found.output_tokens) == (1800, 240)
    assert found.tokens_per_second is None  # a snapshot has no elapsed time
    assert found.prefix_hit_rate == pytest.approx(0.3)
    assert found.model == "Qwen/Qwen3-8B"
    sums = {
        line.split("{")[0]: float(line.rsplit(" ", 1)[1])
        for line in METRICS.splitlines()
        if "{" in line and "_bucket" not in line
    }
    name = "vllm:inter_token_latency_seconds"
    assert found.tpot == sums[f"{name}_sum"] / sums[f"{name}_count"]
    assert "no elapsed time" in read(METRICS).notes[0]


def test_metrics_of_several_engines_are_added_up() -> None:
    lines = [line for line in METRICS.splitlines() if line.startswith("vllm:")]
    second = "\n".join(line.replace('engine="0"', 'engine="1"') for line in lines)
    found = one(METRICS + second)
    assert found.concurrency == 24
    assert found.tpot == pytest.approx(one(METRICS).tpot)


def test_metrics_under_their_older_name() -> None:
    older = METRICS.replace("vllm:inter_token_latency", "vllm:time_per_output_token")
    assert one(older).tpot == one(METRICS).tpot


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 12.0', "", "no request was"),
        ("vllm:request_prompt_tokens_count", "vllm:other", "no request has ended"),
        ("} 12.0", "} NaN", "is nan, which is no measured value"),
        ("} 12.0", "} -1", "is -1, which is no measured value"),
        ("} 12.0", "} 1e12", "more than a server can do"),
        ('"} 12.0', '_2"} 12.0', "metrics of 2 models"),
    ],
)
def test_metrics_without_meaning(old: str, new: str, what: str) -> None:
    assert old in METRICS
    with pytest.raises(InputError, match=what):
        read(METRICS.replace(old, new))


def test_metrics_of_a_speculating_server() -> None:
    with pytest.raises(NotModelledError):
        read(METRICS + 'vllm:spec_decode_num_drafts_total{engine="0"} 5.0\n')


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_FILES = [*sorted(DATA.glob("*.json")), CLOSED, OPEN]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(file=st.sampled_from(_FILES), value=_ANY, draw=st.data())
def test_any_value_anywhere_is_read_or_refused(file: Path, value: Any, draw: st.DataObject) -> None:
    """What comes out has a meaning, whatever stands in the place of one value."""
    data: Any = loaded(file)
    inside: Any = data
    while True:
        keys = sorted(inside) if isinstance(inside, dict) else range(len(inside))
        key = draw.draw(st.sampled_from(list(keys)))
        deeper = isinstance(inside[key], dict | list) and inside[key]
        if not deeper or draw.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = value
    found, problem = Measured(), None
    try:
        found = read(data)
    except AdvisorError as error:
        problem = error
    assert problem is None or (problem.what and problem.where)
    for m in found.measurements:
        assert (m.concurrency is None) != (m.requests_per_second is None)
        figures = (m.prompt_tokens, m.output_tokens, m.tpot, m.ttft, m.tokens_per_second)
        assert all(f is None or (0 < f < 1e15 and math.isfinite(f)) for f in figures)


@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(AdvisorError):
        read(content)
