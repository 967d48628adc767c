"""Calibration files: what is written is read back, and what is wrong is refused at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.calibrations import latency_calibration
from vllm_advisor.knowledge.latency_constants import load_latency

BUNDLED = load_latency()
RIGHT: dict[str, Any] = {
    "schema_version": "1",
    "advisor_version": "0.1.0",
    "date": "2026-11-30",
    "gpu": "h100-sxm",
    "gpus": 2,
    "model": "Qwen/Qwen3-8B",
    "vllm_version": "0.19.0",
    "engine_args": {"tensor_parallel_size": 2},
    "measurements": 5,
    "sources": ["a.json", "b.json"],
    "started_from": "the bundled fit",
    "constants": {"weight_read": {"before": BUNDLED.constants.weight_read, "after": 0.61}},
    "ranges": {"tpot": {"low": 0.9, "high": 1.1}},
    "errors": {"tpot": {"before": 0.12, "after": 0.02, "measurements": 5}},
}


def write(folder: Path, data: Any) -> Path:
    path = folder / "calibration.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def with_value(value: Any, *keys: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(yaml.safe_dump(RIGHT))
    inside = data
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return data


def test_what_changed_replaces_what_is_bundled(tmp_path: Path) -> None:
    fit = latency_calibration(write(tmp_path, RIGHT))
    assert fit.constants.weight_read == 0.61
    rest = {k: v for k, v in fit.constants.as_dict().items() if k != "weight_read"}
    assert rest == {k: v for k, v in BUNDLED.constants.as_dict().items() if k != "weight_read"}
    assert (fit.ranges["tpot"].low, fit.ranges["tpot"].high) == (0.9, 1.1)
    assert fit.ranges["ttft"] == BUNDLED.ranges["ttft"]
    assert fit.sample == 5
    assert "Qwen/Qwen3-8B on h100-sxm" in fit.origin
    assert fit.calibrated_on is not None
    assert fit.calibrated_on.file == "calibration.yaml"  # no path of this machine


def test_a_gpu_that_was_calibrated_counts_as_measured(tmp_path: Path) -> None:
    assert "t4" not in BUNDLED.gpus
    assert "t4" in latency_calibration(write(tmp_path, with_value("t4", "gpu"))).gpus


@pytest.mark.parametrize(
    ("keys", "value", "what"),
    [
        (("schema_version",), "2", "schema_version"),
        (("schema_version",), 1, "schema_version"),
        (("surprise",), 1, "surprise: is an unknown key"),
        (("date",), "yesterday", "date: 'yesterday' is not allowed"),
        (("measurements",), 0, "measurements: 0 has to be at least 1"),
        (("measurements",), "five", "measurements: 'five' is text, not a whole number"),
        (("sources",), [], "sources: is empty"),
        (("constants", "weight_read", "after"), 1.2, "1.2 is outside of 0.01 to 1"),
        (("constants", "weight_read", "after"), float("nan"), "weight_read.after"),
        (("constants", "weight_read", "after"), -0.5, "has to be above 0"),
        (("constants", "weight_read", "before"), 0.5, "0.5 is not the bundled constant"),
        (("constants", "nvlink"), {"before": 0.5, "after": 0.6}, "nvlink: is an unknown key"),
        (
            ("constants", "step"),
            {"before": BUNDLED.constants.step, "after": 5.0},
            "5 is outside of 1e-08 to 1",
        ),
        (("constants", "step"), {"after": 0.002}, "step.before: is missing"),
        (("ranges", "tpot", "high"), 0.5, "0.5 is below low"),
        (("ranges", "tpot", "low"), float("inf"), "ranges.tpot.low"),
        (("ranges", "speed"), {"low": 0.9, "high": 1.1}, "speed: is an unknown key"),
        (("errors", "tpot", "after"), "small", "'small' is text, not a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, keys: tuple[str, ...], value: Any, what: str
) -> None:
    path = write(tmp_path, with_value(value, *keys))
    with pytest.raises(InputError) as raised:
        latency_calibration(path)
    assert what in raised.value.what
    assert raised.value.where.startswith(f"{path}:")
    assert raised.value.fix


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[1]", b"a: [", b"a: &x 1"])
def test_no_calibration_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        latency_calibration(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            latency_calibration(path)


_ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)


@settings(max_examples=50, deadline=None)
@given(key=st.sampled_from(sorted(RIGHT)), value=_ANY | st.dictionaries(st.text(max_size=5), _ANY))
def test_any_value_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    path = write(tmp_path_factory.mktemp("c"), with_value(value, key))
    fit, problem = BUNDLED, None
    try:
        fit = latency_calibration(path)
    except AdvisorError as error:
        problem = error
    assert problem is None or str(path) in problem.where
    assert all(0 < v < 2 for v in fit.constants.as_dict().values())
