"""The comparison while a server runs."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import fake_vllm
import pytest

from vllm_advisor import plugin
from vllm_advisor.plugin import variables
from vllm_advisor.plugin.engine_info import NAMES

PLAN = Path(__file__).parents[2] / "golden" / "contract-review" / "expected" / "plan.yaml"


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vllm.install(monkeypatch)
    fake_vllm.install_prometheus(monkeypatch)


def test_the_class_derives_from_vllms() -> None:
    assert issubclass(plugin.StatLogger, fake_vllm.StatLoggerBase)


def test_a_vllm_without_loggers_is_an_attribute_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["vllm.v1.metrics.loggers"], "StatLoggerBase")
    with pytest.raises(AttributeError, match="no comparison with the plan"):
        _ = plugin.StatLogger


def test_equal_figures_say_nothing_and_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    fake_vllm.predict()
    logger = plugin.StatLogger(fake_vllm.config(), 0)
    logger.log_engine_initialized()
    logger.record(
        fake_vllm.scheduler_stats(), fake_vllm.iteration_stats((100, 8), (40, 3)), None, 0
    )
    logger.record(None, None)
    logger.log()
    logger.record_sleep_state(1, 0)
    assert not fake_vllm.lines(caplog)
    shown = fake_vllm.gauges()
    assert shown["kv_cache_tokens"] == shown["kv_cache_tokens_expected"] == 524_288
    assert (shown["kv_cache_deviation"], shown["kv_cache_usage_peak"]) == (0, 0.5)
    assert (shown["prompt_tokens"], shown["prompt_tokens_max"]) == (140, 100)
    assert (shown["output_tokens"], shown["requests_finished"]) == (11, 2)
    assert (shown["prefix_cache_queries"], shown["prefix_cache_hits"]) == (100, 25)


def test_what_the_engine_is_stands_in_labels() -> None:
    fake_vllm.predict(gpu="h100-sxm")
    config = fake_vllm.config(cache_dtype="fp8", gpu_memory_utilization=0.9)
    config.parallel_config = SimpleNamespace(world_size=2, tensor_parallel_size=2)
    plugin.StatLogger(config, 3).log_engine_initialized()
    (gauge,) = (g for g in fake_vllm.FakeGauge.made if g.name == "vllm_advisor:engine_info")
    assert gauge.value == 1
    said = dict(zip(("model_name", "engine", *NAMES), gauge.labelled, strict=True))
    assert said == {
        "model_name": "org/model",
        "engine": "3",
        "gpu": "h100-sxm",
        "gpus": "2",
        "tensor_parallel_size": "2",
        "pipeline_parallel_size": "",  # this vLLM has no such setting
        "max_model_len": "4096",
        "max_num_seqs": "",
        "max_num_batched_tokens": "",
        "kv_cache_dtype": "fp8",
        "gpu_memory_utilization": "0.9",
    }


def test_less_cache_than_predicted_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    fake_vllm.predict(tokens=1_048_576)
    plugin.StatLogger(vllm_config=fake_vllm.config(), engine_index=1).log_engine_initialized()
    assert fake_vllm.lines(caplog, 30) == [
        (
            "vllm-advisor: engine 1: KV cache 524,288 tokens in 4,096 blocks, "
            "predicted 1,048,576 (-50.0%)"
        )
    ]


def test_verdicts_come_at_intervals_and_when_something_was_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR_INTERVAL", "0.000001")
    fake_vllm.predict()
    logger = plugin.StatLogger(fake_vllm.config())
    logger.log_engine_initialized()
    logger.log()
    assert not fake_vllm.lines(caplog)
    logger.record(fake_vllm.scheduler_stats(), fake_vllm.iteration_stats((100, 8)))
    logger.log()
    assert fake_vllm.lines(caplog) == [
        (
            "vllm-advisor: KV cache 524,288 tokens in 4,096 blocks, as predicted; used at most 50.0%; "
            "running 1 (most 1), waiting 0 (most 0), preemptions 0, prefix hits 25%; "
            "1 requests: prompts of 100 tokens (most 100), answers of 8 (most 8)"
        )
    ]


def test_the_last_word_comes_when_vllm_lets_go(caplog: pytest.LogCaptureFixture) -> None:
    for fault in (False, True):
        logger = plugin.StatLogger(fake_vllm.config())
        logger.record(fake_vllm.scheduler_stats(), fake_vllm.iteration_stats((100, 8)))
        if fault:
            logger.record(SimpleNamespace(), None)
        caplog.clear()
        del logger
        gc.collect()
        said = fake_vllm.lines(caplog)
        assert len([line for line in said if "at the end: KV cache" in line]) == (not fault)


@pytest.mark.parametrize("given", ["-1", "0", "nan", "inf", "soon"])
def test_an_interval_that_is_none_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR_INTERVAL", given)
    assert variables.interval() == 600
    assert f"VLLM_ADVISOR_INTERVAL={given} is no number" in fake_vllm.lines(caplog)[0]


def test_a_fault_in_record_ends_the_watching_alone(caplog: pytest.LogCaptureFixture) -> None:
    logger = plugin.StatLogger(fake_vllm.config())
    for _ in range(3):
        logger.record(SimpleNamespace(), SimpleNamespace())
        logger.log()
    assert len(fake_vllm.lines(caplog)) == 1
    assert "the engine is no longer watched: AttributeError" in fake_vllm.lines(caplog)[0]


@pytest.mark.parametrize("config", [None, object(), SimpleNamespace(cache_config=None)])
def test_configs_of_another_shape(config: object, caplog: pytest.LogCaptureFixture) -> None:
    logger = plugin.StatLogger(config)
    logger.log_engine_initialized()
    logger.record(fake_vllm.scheduler_stats(), fake_vllm.iteration_stats((1, 1)), extra=1)
    assert not fake_vllm.lines(caplog, 30)


def test_off_watches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ADVISOR", "off")
    logger = plugin.StatLogger(fake_vllm.config())
    logger.log_engine_initialized()
    logger.record(None, None)
    assert not fake_vllm.FakeGauge.made


def test_two_engines_share_the_gauges_and_a_registry_that_has_them_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.StatLogger(fake_vllm.config(), 0)
    plugin.StatLogger(fake_vllm.config(), 1)
    assert not fake_vllm.lines(caplog)
    monkeypatch.setattr("vllm_advisor.plugin.gauges._made", {})
    plugin.StatLogger(fake_vllm.config(), 0).record(fake_vllm.scheduler_stats(), None)
    assert "no gauges: ValueError: Duplicated" in fake_vllm.lines(caplog)[0]


def test_the_plan_is_found_by_name_or_by_the_served_model(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR_PLAN", str(PLAN))
    monkeypatch.setenv("VLLM_ADVISOR_INSTANCE", "long-docs")
    plugin.StatLogger(fake_vllm.config()).log_engine_initialized()
    assert "vllm-advisor: long-docs: KV cache 524,288 tokens" in caplog.text
    assert "planned" in caplog.text
    caplog.clear()
    monkeypatch.delenv("VLLM_ADVISOR_INSTANCE")
    argv = ["vllm", "serve", "org/model", "--served-model-name", "org/model", "long-docs"]
    monkeypatch.setattr(sys, "argv", argv)
    plugin.StatLogger(fake_vllm.config()).log_engine_initialized()
    assert "vllm-advisor: long-docs: KV cache" in caplog.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot read: No such file"),
        ("{", "no YAML"),
        ("", "no plan.yaml"),
        ("[1, 2]", "no plan.yaml"),
        ("instances: 7", "no plan.yaml"),
        ("instances: [{name: a, figures: null}]", "no plan.yaml"),
        ("instances: [{name: a}, {name: b}]", "no plan.yaml"),
        ("\x00\x01", "no YAML"),
        ("a: &a [*a, *a]", "no plan.yaml"),
        ("!!python/object/apply:os.system ['true']", "no YAML"),
    ],
)
def test_a_plan_that_cannot_be_read_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    text: str | None,
    says: str,
) -> None:
    path = tmp_path / "plan.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("VLLM_ADVISOR_PLAN", str(path))
    fake_vllm.predict()
    logger = plugin.StatLogger(fake_vllm.config())
    logger.log_engine_initialized()
    said = fake_vllm.lines(caplog)
    assert len(said) == 1
    assert f"no comparison with the plan {path}: {says}" in said[0]
    assert fake_vllm.gauges()["kv_cache_tokens_expected"] == 524_288, "its own prediction stands in"


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x" * 4_000_001])
def test_a_plan_of_other_bytes(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    data: bytes,
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    monkeypatch.setenv("VLLM_ADVISOR_PLAN", str(path))
    plugin.StatLogger(fake_vllm.config())
    assert len(fake_vllm.lines(caplog)) == 1


def test_an_instance_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VLLM_ADVISOR_PLAN", str(PLAN))
    monkeypatch.setenv("VLLM_ADVISOR_INSTANCE", "nowhere")
    plugin.StatLogger(fake_vllm.config())
    assert "no instance nowhere: it has " in fake_vllm.lines(caplog)[0]


def test_a_mark_that_is_none_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for mark in ("", "{", "[]", "7", '{"prediction": 3}', '{"prediction": {"other": 1}}'):
        monkeypatch.setenv("_VLLM_ADVISOR_PREFLIGHT", mark)
        plugin.StatLogger(fake_vllm.config()).log_engine_initialized()
