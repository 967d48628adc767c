"""Memory calibration files: of which kind they are, and what is wrong is refused at its place."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.calibrations import (
    latency_calibration,
    memory_calibrations,
    read_calibrations,
)
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.units import GIB

RIGHT: dict[str, Any] = {
    "schema_version": "1",
    "kind": "memory",
    "advisor_version": "0.1.0",
    "date": "2026-11-30",
    "gpu": "h200-sxm",
    "gpus": 2,
    "model": "Qwen/Qwen3-8B",
    "vllm_version": "0.19.0",
    "engine_args": {"tensor_parallel_size": 2},
    "log": "startup.log",
    "notes": [],
    "terms": {
        "gpu_memory": {"predicted": 150108897280, "logged": 150119844413, "line": 21},
        "weights": {"predicted": 8 * GIB, "logged": 8 * GIB + 99, "line": 3},
        "activations": {"predicted": 2 * GIB, "logged": 3 * GIB, "line": 4},
        "non_torch": {"predicted": GIB, "logged": -GIB // 100, "line": 4},
    },
}
LATENCY: dict[str, Any] = {
    **{k: v for k, v in RIGHT.items() if k not in ("kind", "log", "notes", "terms")},
    "measurements": 5,
    "sources": ["a.json"],
    "started_from": "the bundled fit",
    "constants": {"weight_read": {"before": load_latency().constants.weight_read, "after": 0.61}},
    "ranges": {},
    "errors": {},
}


def write(folder: Path, data: Any, name: str = "memory.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def with_value(value: Any, *keys: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(yaml.safe_dump(RIGHT))
    inside = data
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return data


def test_both_kinds_are_told_apart(tmp_path: Path) -> None:
    memory, latency = write(tmp_path, RIGHT), write(tmp_path, LATENCY, "latency.yaml")
    found = read_calibrations([memory, latency])
    assert found.latency is not None
    assert found.latency.constants.weight_read == 0.61
    (file,) = found.memory
    assert (file.name, file.keys.gpu) == ("memory.yaml", "h200-sxm")
    assert list(file.keys.terms.given()) == ["gpu_memory", "weights", "activations", "non_torch"]
    assert read_calibrations(RIGHT).memory[0].keys == file.keys  # plain data
    assert read_calibrations(file).memory == (file,)  # read already
    assert read_calibrations(None).memory == ()
    marked = write(tmp_path, {**LATENCY, "kind": "latency"}, "marked.yaml")
    assert latency_calibration(marked).constants == found.latency.constants


def test_one_of_each(tmp_path: Path) -> None:
    memory, latency = write(tmp_path, RIGHT), write(tmp_path, LATENCY, "latency.yaml")
    with pytest.raises(InputError, match="both of the memory of h200-sxm"):
        read_calibrations([memory, RIGHT])
    with pytest.raises(InputError, match="two calibrations of speed"):
        read_calibrations([latency, latency])
    other = with_value("h100-sxm", "gpu")
    assert len(read_calibrations([memory, other]).memory) == 2
    with pytest.raises(InputError, match="says nothing of memory"):
        memory_calibrations(latency)
    with pytest.raises(InputError, match="none of speed"):
        latency_calibration(memory)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("schema_version",), "2", "schema_version"),
        (("kind",), "speed", "kind"),
        (("gpus",), 0, "gpus"),
        (("date",), "today", "date"),
        (("more",), 1, "more"),
        (("notes",), ["a\nb"], "notes[0]"),
        (("terms",), {}, "no term of the memory beside the weights"),
        (("terms", "non_torch"), {"predicted": 1, "logged": 1}, "terms.non_torch.line"),
        (("terms", "activations", "predicted"), 0, "0 bytes have no ratio"),
        (("terms", "activations", "predicted"), GIB // 100, "more than 100 times"),
        (("terms", "activations", "logged"), -1, "terms.activations.logged"),
        (("terms", "activations", "logged"), 1.5, "terms.activations.logged"),
        (("terms", "weights", "logged"), 80 * GIB, "is more than 64"),
        (("terms", "loading"), {"predicted": 1, "logged": 1, "line": 1}, "terms.loading"),
        (
            ("terms", "activations_and_cuda_graphs"),
            {"predicted": 1, "logged": 1, "line": 1},
            "has it already",
        ),
        (
            ("terms", "rest"),
            {"predicted": 1, "logged": 1, "line": 1, "of": ["non_torch"]},
            "has a term of its own",
        ),
        (("terms", "rest"), {"predicted": 1, "logged": 1, "line": 1, "of": ["all"]}, "of[0]"),
    ],
)
def test_what_is_wrong_is_refused_at_its_line(
    tmp_path: Path, keys: tuple[str, ...], value: Any, said: str
) -> None:
    path = write(tmp_path, with_value(value, *keys))
    with pytest.raises(InputError) as caught:
        read_calibrations(path)
    error = caught.value
    assert said in error.what
    assert error.where.startswith(f"{path}:")
    assert error.fix


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read") as caught:
        read_calibrations(tmp_path / "none.yaml")
    assert "vllm-advisor report LOG --output FILE" in caught.value.fix
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        read_calibrations(tmp_path / "bytes.yaml")


_VALUES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=9)
)
_PATHS = [(key,) for key in RIGHT] + [
    ("terms", name, key) for name in RIGHT["terms"] for key in ("predicted", "logged", "line")
]


@given(path=st.sampled_from(_PATHS), value=_VALUES)
@settings(max_examples=300, deadline=None)
def test_any_value_is_read_or_refused(path: tuple[str, ...], value: Any) -> None:
    with contextlib.suppress(InputError):
        read_calibrations(with_value(value, *path))
