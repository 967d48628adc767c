"""A process of its own for each test: no marks, no variables, nothing said before."""

from __future__ import annotations

import logging
import os

import pytest

from vllm_advisor.plugin import gauges, guard, variables


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for name in [n for n in os.environ if "VLLM_" in n]:
        monkeypatch.delenv(name)
    # The plugin sets these itself; monkeypatch has to know them to take them away again.
    for name in (
        "_VLLM_ADVISOR_PREFLIGHT",
        "_VLLM_ADVISOR",
        "_VLLM_ADVISOR_PLAN",
        "_VLLM_ADVISOR_INSTANCE",
        "_VLLM_ADVISOR_INTERVAL",
    ):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    monkeypatch.setattr(guard, "_said", set())
    monkeypatch.setattr(variables, "_here", {})
    monkeypatch.setattr(gauges, "_made", {})
    caplog.set_level(logging.DEBUG, logger="vllm.advisor")
