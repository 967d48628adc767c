"""The check runs once, in the front end, and nothing of it reaches vLLM but a refusal."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import fake_vllm
import pytest

from vllm_advisor import plugin
from vllm_advisor.plugin import checking, hook, variables
from vllm_advisor.plugin.checking import Preflight
from vllm_advisor.plugin.telling import Result, Told


@pytest.fixture
def engine_args(monkeypatch: pytest.MonkeyPatch) -> type[fake_vllm.EngineArgs]:
    return fake_vllm.install(monkeypatch)


def examine_with(monkeypatch: pytest.MonkeyPatch, examine: Any, limit: float = 5.0) -> None:
    monkeypatch.setattr(checking, "Preflight", lambda: Preflight(examine, limit))


def test_importing_the_entry_point_is_light() -> None:
    code = (
        "import sys, time; import typing, importlib; start = time.perf_counter()\n"
        "import vllm_advisor.plugin\n"
        "print(time.perf_counter() - start)\n"
        "print(*(n for n in ('yaml', 'jinja2', 'typer', 'pydantic', 'vllm', 'rich', "
        "'vllm_advisor.api', 'prometheus_client') if n in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    seconds, loaded = done.stdout.splitlines()
    assert not loaded
    assert float(seconds) < 0.5  # milliseconds; a machine that others use takes longer


def test_a_start_is_checked_once(
    engine_args: type[fake_vllm.EngineArgs], caplog: pytest.LogCaptureFixture
) -> None:
    plugin.preflight()
    plugin.preflight()
    args = engine_args()
    first = args.create_engine_config("server", headless=True)
    args.create_engine_config()
    plugin.preflight()  # the mark is set
    assert first.model_config.model == "org/model"
    assert args.calls == [("server", True), (None, False)]
    said = [line for line in fake_vllm.lines(caplog) if "checked in" in line]
    assert len(said) == 1
    assert "not known: the model (no local facts of org/model" in said[0]
    assert len(fake_vllm.lines(caplog)) <= 2


def test_loading_twice_wraps_once(engine_args: type[fake_vllm.EngineArgs]) -> None:
    plugin.preflight()
    wrapper = engine_args.create_engine_config
    plugin.preflight()
    assert engine_args.create_engine_config is wrapper
    assert wrapper.__name__ == "create_engine_config"


@pytest.mark.parametrize(
    "argv",
    [["vllm", "bench", "latency"], ["pytest"], ["-c"], [""], ["worker.py", "org/model"]],
)
def test_what_serves_nothing_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    engine_args = fake_vllm.install(monkeypatch, argv)
    before = engine_args.create_engine_config
    plugin.preflight()
    assert engine_args.create_engine_config is before


def test_off_and_child_processes_are_left_alone(
    engine_args: type[fake_vllm.EngineArgs], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = engine_args.create_engine_config
    with monkeypatch.context() as patch:
        patch.setenv("VLLM_ADVISOR", "off")
        plugin.preflight()
        assert engine_args.create_engine_config is before
        assert "VLLM_ADVISOR" not in os.environ, "vLLM would take it for a slip of its own"
        patch.delenv("_VLLM_ADVISOR")
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing, "parent_process", lambda: "a front end")
        plugin.preflight()
        assert engine_args.create_engine_config is before
    variables.set_mark(None)
    plugin.preflight()
    assert engine_args.create_engine_config is before


def test_an_unknown_mode_is_said_and_means_warn(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR", "srtict")
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    plugin.preflight()
    engine_args().create_engine_config()
    said = fake_vllm.lines(caplog)
    assert [s for s in said if "VLLM_ADVISOR=srtict is none of off, warn, strict" in s] == said[:1]
    assert any("SEC005" in s and "fix:" in s and "vllm-advisor rules SEC005" in s for s in said)


def test_strict_refuses_errors_alone(
    engine_args: type[fake_vllm.EngineArgs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR", "strict")
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    plugin.preflight()
    with pytest.raises(ValueError, match=r"VLLM_ADVISOR=strict\): SEC005 .*VLLM_ADVISOR=warn"):
        engine_args().create_engine_config()


def test_strict_starts_what_has_no_error(
    engine_args: type[fake_vllm.EngineArgs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR", "strict")
    plugin.preflight()
    assert engine_args().create_engine_config() is not None


def test_what_vllm_raises_stays_as_it_is(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    plugin.preflight()
    fault = ValueError("vLLM's own")
    with pytest.raises(ValueError, match="vLLM's own") as raised:
        engine_args(error=fault).create_engine_config()
    assert raised.value is fault
    assert [s for s in fake_vllm.lines(caplog) if "SEC005" in s], "errors may tell why"


class _Panic(BaseException):
    """As extensions in Rust raise it."""


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), _Panic("p")])
def test_a_check_that_fails_is_one_line(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    def examine(*_: Any) -> Result:
        raise error

    examine_with(monkeypatch, examine)
    plugin.preflight()
    assert engine_args().create_engine_config() is not None
    said = fake_vllm.lines(caplog)
    assert len(said) == 1
    assert f"not checked: {type(error).__name__}" in said[0]


def test_a_slow_check_is_given_up(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    examine_with(monkeypatch, lambda *_: time.sleep(30) or Result(), limit=0.2)
    plugin.preflight()
    start = time.monotonic()
    assert engine_args().create_engine_config() is not None
    assert time.monotonic() - start < 10
    assert fake_vllm.lines(caplog) == ["vllm-advisor: not checked: not done after 0.2 s"]


def until(true: Callable[[], Any], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true())


@pytest.fixture
def spawning(monkeypatch: pytest.MonkeyPatch) -> None:
    """As vLLM's command line sets it."""
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


@pytest.mark.usefixtures("spawning")
def test_a_start_does_not_wait_for_the_check(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on = threading.Event()
    examine_with(monkeypatch, lambda *_: go_on.wait(10) and Result())
    plugin.preflight()
    assert engine_args().create_engine_config() is not None
    assert not fake_vllm.lines(caplog)
    go_on.set()
    assert until(lambda: [s for s in fake_vllm.lines(caplog) if "checked in" in s])


@pytest.mark.usefixtures("spawning")
def test_what_is_predicted_beside_the_start_is_for_this_process(
    engine_args: type[fake_vllm.EngineArgs], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(predicted={"by": "predicted", "tokens": 7})
    monkeypatch.setattr(checking, "tell", lambda *_, **__: told)
    examine_with(monkeypatch, lambda *_: Result())
    plugin.preflight()
    engine_args().create_engine_config()
    assert until(variables.marked_prediction)
    assert variables.marked_prediction() == {"by": "predicted", "tokens": 7}
    assert json.loads(os.environ["_VLLM_ADVISOR_PREFLIGHT"])["prediction"] is None


@pytest.mark.usefixtures("spawning")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_ADVISOR", "strict"),
        ("PROMETHEUS_MULTIPROC_DIR", "/metrics"),
        ("VLLM_WORKER_MULTIPROC_METHOD", "fork"),
    ],
)
def test_whoever_needs_the_check_waits_for_it(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: str,
) -> None:
    monkeypatch.setenv(name, value)
    examine_with(monkeypatch, lambda *_: time.sleep(0.2) or Result())
    plugin.preflight()
    engine_args().create_engine_config()
    assert [s for s in fake_vllm.lines(caplog) if "checked in" in s]


@pytest.mark.usefixtures("spawning")
def test_what_vllm_refuses_is_explained_before_it_ends(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    plugin.preflight()
    with pytest.raises(ValueError, match="vLLM's own"):
        engine_args(error=ValueError("vLLM's own")).create_engine_config()
    assert [s for s in fake_vllm.lines(caplog) if "SEC005" in s]


@pytest.mark.usefixtures("spawning")
@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), _Panic("p"), SystemExit(3)])
def test_a_check_that_fails_beside_the_start_is_one_line(
    engine_args: type[fake_vllm.EngineArgs],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    def examine(*_: Any) -> Result:
        raise error

    examine_with(monkeypatch, examine)
    plugin.preflight()
    assert engine_args().create_engine_config() is not None
    assert until(lambda: fake_vllm.lines(caplog))
    said = f"vllm-advisor: not checked: {type(error).__name__}: {error}"
    assert fake_vllm.lines(caplog) == [said.rstrip()]


@pytest.mark.parametrize("config", [object(), None, 7, "text", {"model_config": 1}])
def test_a_config_of_another_shape_is_no_fault(
    engine_args: type[fake_vllm.EngineArgs], caplog: pytest.LogCaptureFixture, config: object
) -> None:
    plugin.preflight()
    args = engine_args(result=config)
    assert args.create_engine_config() is (config if config is not None else args.result) or True
    assert len(fake_vllm.lines(caplog)) <= 2


def test_changed_signatures_pass_through(
    engine_args: type[fake_vllm.EngineArgs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        engine_args, "create_engine_config", lambda _, a, *, b, **more: (a, b, more)
    )
    plugin.preflight()
    assert engine_args().create_engine_config(1, b=2, c=3) == (1, 2, {"c": 3})


def test_an_unknown_vllm_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine_args = fake_vllm.install(monkeypatch)
    monkeypatch.delattr(sys.modules["vllm.engine.arg_utils"], "EngineArgs")
    plugin.preflight()
    monkeypatch.delitem(sys.modules, "vllm.engine.arg_utils")
    plugin.preflight()
    assert {"vllm-advisor: not checked: this vLLM has no EngineArgs.create_engine_config"} == set(
        fake_vllm.lines(caplog)
    )
    assert engine_args is not None


def test_a_fault_of_the_hook_itself_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake_vllm.install(monkeypatch)

    def broken() -> None:
        raise OSError("broken")

    monkeypatch.setattr(hook, "install", broken)
    plugin.preflight()
    assert fake_vllm.lines(caplog) == ["vllm-advisor: not checked: OSError: broken"]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(
    engine_args: type[fake_vllm.EngineArgs], raised: type[BaseException]
) -> None:
    plugin.preflight()
    with pytest.raises(raised):
        engine_args(error=raised()).create_engine_config()
