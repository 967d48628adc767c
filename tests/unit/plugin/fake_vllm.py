"""Modules that look to the plugin like vLLM's, as faulty as a test wants them."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.expected import Expected


class FakeGauge:
    """As prometheus_client's, in a registry that is nothing but a list."""

    made: ClassVar[list[FakeGauge]] = []  # those that are registered

    def __init__(self, name: str, *_: str, **options: Any) -> None:
        self.name, self.options, self.value = name, options, None
        self.register(self)

    @classmethod
    def register(cls, gauge: FakeGauge) -> None:
        if any(g.name == gauge.name for g in cls.made):
            raise ValueError(f"Duplicated timeseries: {gauge.name}")
        cls.made.append(gauge)

    def labels(self, *values: str) -> FakeGauge:
        self.labelled = values
        return self

    def set(self, value: float) -> None:
        self.value = value


@dataclass
class EngineArgs:
    """As vLLM's: a dataclass that makes a configuration of itself."""

    model: str = "org/model"
    max_model_len: int | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None

    def create_engine_config(self, usage_context: Any = None, *, headless: bool = False) -> Any:
        self.calls.append((usage_context, headless))
        if self.error is not None:
            raise self.error
        return self.result if self.result is not None else config()


class StatLoggerBase:
    def __init__(self, *_: Any, **__: Any) -> None:
        raise AssertionError("abstract in vLLM")


def config(model: str = "org/model", **cache: Any) -> SimpleNamespace:
    """A VllmConfig of a CPU server; ``cache`` are attributes of its cache_config."""
    sizes = {"block_size": 128, "num_gpu_blocks": 4096, "kv_cache_size_tokens": 524_288} | cache
    return SimpleNamespace(
        model_config=SimpleNamespace(
            model=model, served_model_name=model, max_model_len=4096, hf_config=None
        ),
        cache_config=SimpleNamespace(**sizes),
        device_config=SimpleNamespace(device_type="cpu"),
    )


def scheduler_stats(**changed: Any) -> SimpleNamespace:
    given = {
        "num_running_reqs": 1,
        "num_waiting_reqs": 0,
        "kv_cache_usage": 0.5,
        "prefix_cache_stats": SimpleNamespace(queries=100, hits=25),
    }
    return SimpleNamespace(**(given | changed))


def iteration_stats(*lengths: tuple[int, int], preempted: int = 0) -> SimpleNamespace:
    finished = [SimpleNamespace(num_prompt_tokens=p, num_generation_tokens=o) for p, o in lengths]
    return SimpleNamespace(num_preempted_reqs=preempted, finished_requests=finished)


def install(
    patch: pytest.MonkeyPatch, argv: list[str] | None = None, version: str = "0.32.0+cpu"
) -> type[EngineArgs]:
    """Put the modules where vLLM's would be, and let this process look like ``vllm serve``."""
    vllm = ModuleType("vllm")
    vllm.__version__ = version
    arg_utils = ModuleType("vllm.engine.arg_utils")
    fresh = type("EngineArgs", (EngineArgs,), {})
    fresh.create_engine_config = EngineArgs.create_engine_config
    arg_utils.EngineArgs = fresh
    loggers = ModuleType("vllm.v1.metrics.loggers")
    loggers.StatLoggerBase = StatLoggerBase
    for name, module in (
        ("vllm", vllm),
        ("vllm.engine", ModuleType("vllm.engine")),
        ("vllm.engine.arg_utils", arg_utils),
        ("vllm.v1", ModuleType("vllm.v1")),
        ("vllm.v1.metrics", ModuleType("vllm.v1.metrics")),
        ("vllm.v1.metrics.loggers", loggers),
    ):
        patch.setitem(sys.modules, name, module)
    patch.setattr(sys, "argv", argv or ["vllm", "serve", "org/model", "--host", "127.0.0.1"])
    return fresh


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [
        r.getMessage() for r in caplog.records if r.name == "vllm.advisor" and r.levelno >= level
    ]


def install_prometheus(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeGauge, "made", [])
    module = ModuleType("prometheus_client")
    module.Gauge = FakeGauge
    module.REGISTRY = SimpleNamespace(register=FakeGauge.register)
    patch.setitem(sys.modules, "prometheus_client", module)


def gauges() -> dict[str, float | None]:
    return {g.name.removeprefix("vllm_advisor:"): g.value for g in FakeGauge.made}


def predict(tokens: int = 524_288, blocks: int = 4096, gpu: str = "") -> None:
    variables.set_mark(
        Expected(
            by="predicted", tokens=tokens, num_gpu_blocks=blocks, max_concurrency=128.0, gpu=gpu
        ).to_dict()
    )
