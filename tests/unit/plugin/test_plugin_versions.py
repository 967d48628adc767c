"""Shapes of the logger's surroundings that only some versions of vLLM have, or several engines."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_vllm
import pytest

from vllm_advisor import plugin


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vllm.install(monkeypatch)
    fake_vllm.install_prometheus(monkeypatch)


def test_gauges_that_vllm_takes_away_come_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loggers = [plugin.StatLogger(fake_vllm.config(), engine) for engine in (0, 1)]
    fake_vllm.FakeGauge.made.clear()  # 0.21 makes its own metrics then
    for logger in loggers:
        logger.log_engine_initialized()
    assert fake_vllm.gauges()["kv_cache_tokens"] == 524_288
    monkeypatch.delattr(sys.modules["prometheus_client"], "REGISTRY")
    loggers[0].log_engine_initialized()
    assert "no gauges: AttributeError" in fake_vllm.lines(caplog)[0]
    assert fake_vllm.gauges()["kv_cache_tokens"] == 524_288, "it is watched all the same"


def test_signatures_of_other_versions() -> None:
    logger = plugin.StatLogger(fake_vllm.config(), engine_index=0, client_count=2)
    logger.record(None, None, None, 0, "new", more=True)
    logger.record_sleep_state(is_awake=1, level=2, reason="new")


def test_older_versions_tell_blocks_alone(caplog: pytest.LogCaptureFixture) -> None:
    fake_vllm.predict(tokens=1000, blocks=10)
    logger = plugin.StatLogger(fake_vllm.config(kv_cache_size_tokens=None, num_gpu_blocks=5))
    logger.log_engine_initialized()
    assert "KV cache 500 tokens in 5 blocks, predicted 1,000 (-50.0%)" in caplog.text


def test_a_block_is_worth_what_the_check_computed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    figures = (
        "kv_cache: {tokens: 600000, num_gpu_blocks: 4687, max_concurrency: 9}, "
        "max_model_len: {configured: 9}"
    )
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"instances: [{{name: a, classes: [], engine_args: {{}}, figures: {{{figures}}}}}]", "utf-8"
    )
    monkeypatch.setenv("VLLM_ADVISOR_PLAN", str(plan))
    config = fake_vllm.config(kv_cache_size_tokens=None)
    plugin.StatLogger(config).log_engine_initialized()
    assert "a: KV cache 524,344 tokens in 4,096 blocks, planned 600,000" in caplog.text
    fake_vllm.predict()
    plugin.StatLogger(config).log_engine_initialized()
    assert "a: KV cache 524,288 tokens in 4,096 blocks, planned 600,000" in caplog.text


@pytest.mark.parametrize(
    ("parallel", "blocks"),
    [
        ({"data_parallel_size": 2, "data_parallel_size_local": 1}, 4096),
        (
            {"data_parallel_size": 4, "data_parallel_size_local": 2, "local_engines_only": True},
            4096,
        ),
        ({"data_parallel_size": 2, "data_parallel_rank_local": 1}, 8192),
        ({"data_parallel_size": None}, 8192),
    ],
)
@pytest.mark.parametrize("tells_tokens", [True, False])  # 0.21 does not
def test_one_engine_of_several(
    caplog: pytest.LogCaptureFixture,
    parallel: dict[str, Any],
    blocks: int,
    tells_tokens: bool,
) -> None:
    fake_vllm.predict(tokens=blocks * 128, blocks=blocks)
    config = fake_vllm.config(num_gpu_blocks=8192, kv_cache_size_tokens=blocks * 128)
    if not tells_tokens:
        del config.cache_config.kv_cache_size_tokens
    config.parallel_config = SimpleNamespace(**parallel)
    plugin.StatLogger(config, 1).log_engine_initialized()
    assert not fake_vllm.lines(caplog)
    shown = fake_vllm.gauges()
    assert (shown["kv_cache_blocks"], shown["kv_cache_tokens"]) == (blocks, blocks * 128)
