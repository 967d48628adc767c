"""The last word of a process that started several API servers."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_vllm
import pytest

from vllm_advisor import plugin
from vllm_advisor.plugin import together
from vllm_advisor.plugin.expected import Expected
from vllm_advisor.plugin.gauges import values
from vllm_advisor.plugin.guard import Running
from vllm_advisor.plugin.tally import Actual, Tally

PREDICTED = Expected(by="predicted", tokens=524_288, num_gpu_blocks=4096, max_concurrency=128.0)
SEEN = Tally(
    running_peak=3,
    waiting_peak=2,
    kv_usage_peak=0.5,
    preemptions=1,
    prefix_queries=640,
    prefix_hits=160,
    requests=4,
    prompt_tokens=640,
    prompt_tokens_max=300,
    output_tokens=20,
    output_tokens_max=9,
)


def shown(tally: Tally, engine: int = 0) -> Iterator[SimpleNamespace]:
    """As prometheus_client collects what the API servers' gauges show."""
    actual = Actual(tokens=524_288, num_gpu_blocks=4096)
    for name, value in values(tally, actual, PREDICTED):
        sample = SimpleNamespace(labels={"engine": str(engine), "model_name": "m"}, value=value)
        yield SimpleNamespace(name=f"vllm_advisor:{name}", samples=[sample])


def read(expected: Expected | None) -> Running[Expected | None]:
    reading = Running(lambda: expected)
    reading.result(9)
    return reading


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[SimpleNamespace]:
    """Fill it with metrics; several API servers are being started."""
    metrics = [SimpleNamespace(name="vllm:prompt_tokens", samples=[SimpleNamespace(labels={})])]
    client = ModuleType("prometheus_client")
    client.CollectorRegistry = object
    multiprocess = ModuleType("prometheus_client.multiprocess")
    multiprocess.MultiProcessCollector = lambda _: SimpleNamespace(collect=lambda: metrics)
    monkeypatch.setitem(sys.modules, "prometheus_client", client)
    monkeypatch.setitem(sys.modules, "prometheus_client.multiprocess", multiprocess)
    monkeypatch.delitem(sys.modules, "vllm_advisor.plugin.stat_logger", raising=False)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return metrics


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was registered to be called when the process ends."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(atexit, "register", lambda *call: found.append(call))
    return found


def test_all_servers_together_in_one_line(
    collected: list[SimpleNamespace], caplog: pytest.LogCaptureFixture
) -> None:
    collected.extend(shown(SEEN))
    together.last_words(read(PREDICTED), os.getpid())
    (said,) = fake_vllm.lines(caplog)
    assert said.startswith(
        "vllm-advisor: at the end, all API servers together: KV cache 524,288 tokens in 4,096 "
        "blocks, as predicted; used at most 50.0%; running 0 (most 3), waiting 0 (most 2), "
        "preemptions 1, prefix hits 25%; 4 requests: prompts of 160 tokens (most 300), answers of "
        "5 (most 9). 1 preemptions:"
    )


def test_a_plan_that_is_not_read_in_time_is_none(
    collected: list[SimpleNamespace], caplog: pytest.LogCaptureFixture
) -> None:
    collected.extend(shown(SEEN))
    goes_on = Event()
    together.last_words(Running(goes_on.wait), os.getpid())
    goes_on.set()
    assert "4,096 blocks, nothing was planned or predicted" in fake_vllm.lines(caplog)[0]


def test_a_line_for_each_engine_that_served(
    collected: list[SimpleNamespace], caplog: pytest.LogCaptureFixture
) -> None:
    for engine, tally in enumerate((SEEN, Tally(), SEEN)):
        collected.extend(shown(tally, engine))
    together.last_words(read(None), os.getpid())
    assert [s.split(" at the end")[0] for s in fake_vllm.lines(caplog)] == [
        "vllm-advisor:",
        "vllm-advisor: engine 2:",
    ]


def test_it_is_silent_where_another_speaks(
    collected: list[SimpleNamespace],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected.extend(shown(SEEN))
    together.last_words(read(PREDICTED), os.getpid() + 1)
    monkeypatch.setitem(sys.modules, "vllm_advisor.plugin.stat_logger", ModuleType("served"))
    together.last_words(read(PREDICTED), os.getpid())
    assert not fake_vllm.lines(caplog)


def test_faults_stay_here(
    collected: list[SimpleNamespace], caplog: pytest.LogCaptureFixture
) -> None:
    collected.append(SimpleNamespace(name="vllm_advisor:x", samples=[SimpleNamespace(labels={})]))
    together.last_words(read(PREDICTED), os.getpid())
    assert fake_vllm.lines(caplog, 0) == ["vllm-advisor: no last verdict: KeyError: 'engine'"]


def test_a_start_with_several_servers_arranges_it(
    collected: list[SimpleNamespace],
    at_exit: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine_args = fake_vllm.install(monkeypatch)
    plugin.preflight()
    engine_args().create_engine_config()
    engine_args().create_engine_config()
    calls = [call for call in at_exit if call[0] is together.last_words]
    assert [call[2] for call in calls] == [os.getpid()]


def test_a_start_with_one_server_does_not(
    collected: list[SimpleNamespace],
    at_exit: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    together.arrange(fake_vllm.config())
    assert not at_exit


def test_a_fault_while_it_is_arranged_stops_nothing(
    collected: list[SimpleNamespace],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: Any) -> None:
        raise OSError("broken")

    engine_args = fake_vllm.install(monkeypatch)
    monkeypatch.setattr(together, "arrange", broken)
    plugin.preflight()
    assert engine_args().create_engine_config() is not None
    assert "no last verdict: OSError: broken" in fake_vllm.lines(caplog, 0)[-1]
