"""calibrate(): from result files to constants, and what estimate() makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor import estimate
from vllm_advisor.api import CalibrationReport, calibrate, write_calibration
from vllm_advisor.errors import InfeasibleError, InputError, OutputError, UnknownFactError
from vllm_advisor.knowledge.calibrations import latency_calibration
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.types.source import Confidence

DATA = Path(__file__).parents[2] / "data" / "bench_results"
RUNS = DATA / "vllm"
ALONE = next(RUNS.glob("*concurrency1-*"))
BUNDLED = load_latency()
LOAD = {"input_tokens": 1000, "output_tokens": 200, "concurrency": 8}


def calibration(*results: Path, **given: Any) -> CalibrationReport:
    server = {"gpu": "h100-sxm", "vllm_version": "0.19.0", **given}
    return calibrate("qwen3-8b", results=results or (DATA,), **server)


@pytest.fixture(scope="module")
def found() -> CalibrationReport:
    return calibration()


def test_every_file_of_a_folder_is_read_once(found: CalibrationReport) -> None:
    files = [path.name for path in DATA.rglob("*") if path.is_file()]
    assert sorted(found.sources) == sorted(files)
    assert calibration(DATA, RUNS, ALONE).sources == found.sources


def test_errors_fall(found: CalibrationReport) -> None:
    errors = found.to_dict()["errors"]
    assert set(errors) == {"tpot", "throughput", "ttft", "ttft_unloaded"}
    for name, each in errors.items():
        assert each["after"] < each["before"], name
    assert errors["tpot"]["after"] < 0.03


def test_measured_figures_are_those_of_the_file() -> None:
    data = json.loads(ALONE.read_text())
    (run,) = calibration(ALONE).to_dict()["measurements"]
    assert run["tpot_ms"]["measured"] == round(data["mean_tpot_ms"], 2)
    assert run["ttft_ms"]["measured"] == round(data["mean_ttft_ms"], 2)
    assert run["output_tokens_per_second"]["measured"] == round(data["output_throughput"], 2)
    assert run["concurrency"] == 1


def test_before_is_what_estimate_says() -> None:
    (run,) = calibration(ALONE).to_dict()["measurements"]
    said = estimate(
        "qwen3-8b",
        gpu="h100-sxm",
        vllm_version="0.19.0",
        input_tokens=round(run["input_tokens"]),
        output_tokens=round(run["output_tokens"]),
    ).to_dict()
    assert run["tpot_ms"]["before"] == pytest.approx(said["tpot_ms"]["point"], rel=2e-3)
    assert run["ttft_ms"]["before"] == pytest.approx(said["ttft_ms"]["point"], rel=5e-3)


def test_the_file_says_the_same_as_the_report(found: CalibrationReport, tmp_path: Path) -> None:
    path = tmp_path / "calibration.yaml"
    write_calibration(found, path)
    read = latency_calibration(path)
    assert read.constants == found.constants == found.fit.constants
    assert read.ranges == found.ranges == found.fit.ranges
    assert read.sample == 13
    assert str(tmp_path) not in path.read_text()
    assert str(DATA) not in path.read_text()


def test_a_file_is_not_overwritten_unasked(found: CalibrationReport, tmp_path: Path) -> None:
    path = tmp_path / "calibration.yaml"
    write_calibration(found, path)
    write_calibration(found, path)  # the same content is no conflict
    path.write_text("mine")
    with pytest.raises(OutputError, match="other content"):
        write_calibration(found, path)
    assert path.read_text() == "mine"
    write_calibration(found, path, overwrite=True)
    assert path.read_text() == found.text()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "missing/calibration.yaml"])
def test_what_cannot_be_written(found: CalibrationReport, tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError):
        write_calibration(found, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_estimate_with_it_is_of_this_server(found: CalibrationReport) -> None:
    server = {"gpu": "h100-sxm", "vllm_version": "0.19.0", **LOAD}
    before = estimate("qwen3-8b", **server)
    after = estimate("qwen3-8b", fit=found.fit, **server)
    assert after.performance.tpot.point > before.performance.tpot.point * 1.05
    assert (before.confidence, after.confidence) == (Confidence.MEDIUM, Confidence.HIGH)
    assert after.to_dict()["constants"]["origin"].startswith(
        "13 measurements of Qwen/Qwen3-8B on h100-sxm (calibrated)"
    )
    assert after.to_dict()["constants"]["date"] == found.date


def test_few_measurements_do_not_raise_confidence() -> None:
    fit = calibration(ALONE).fit
    assert estimate("qwen3-8b", gpu="h100-sxm", fit=fit, **LOAD).confidence is Confidence.MEDIUM


def test_another_model_is_said_and_lowers_nothing(found: CalibrationReport) -> None:
    other = estimate("llama-3.1-8b-instruct", gpu="h100-sxm", fit=found.fit, **LOAD)
    assert "calibrated with Qwen/Qwen3-8B, not with this model" in other.not_modelled
    assert other.confidence is Confidence.MEDIUM


def test_another_gpu_is_refused(found: CalibrationReport) -> None:
    with pytest.raises(InputError, match="made on h100-sxm, not on a100-sxm4-80"):
        estimate("qwen3-8b", gpu="a100-sxm4-80", fit=found.fit, **LOAD)
    with pytest.raises(InputError, match="made on h100-sxm, not on l40s"):
        calibration(gpu="l40s", fit=found.fit)


def test_an_earlier_calibration_is_where_it_starts() -> None:
    first = calibration(*sorted(RUNS.glob("*.json"))[:3])
    second = calibration(DATA / "guidellm-0.5.json", fit=first.fit)
    assert second.to_dict()["constants"]["weight_read"]["before"] == first.constants.weight_read
    assert second.measurements == 5
    assert second.fit.constants == second.constants
    text = second.text()  # beside the bundled one: a file stands for itself
    assert f"before: {BUNDLED.constants.weight_read}" in text


def test_data_parallel_engines_share_the_load(tmp_path: Path) -> None:
    """Two engines at twice the requests are what one is."""
    data = json.loads(next(RUNS.glob("*concurrency16-*")).read_text())
    for name in ("max_concurrency", "completed", "total_input_tokens", "total_output_tokens"):
        data[name] *= 2
    data["output_throughput"] *= 2
    double = tmp_path / "double.json"
    double.write_text(json.dumps(data))
    one = calibration(next(RUNS.glob("*concurrency16-*")))
    two = calibration(double, gpu_count=2, data_parallel_size=2)
    assert two.constants == one.constants


def test_what_prefix_caching_finds_is_not_computed() -> None:
    cold = calibration(ALONE).to_dict()["measurements"][0]["ttft_ms"]["before"]
    warm = calibration(ALONE, prefix_hit_rate=0.9).to_dict()["measurements"][0]["ttft_ms"]["before"]
    assert warm < 0.8 * cold


def test_another_name_of_the_model_is_said(tmp_path: Path) -> None:
    data = json.loads(ALONE.read_text())
    (tmp_path / "r.json").write_text(json.dumps({**data, "model_id": "prod-chat"}))
    assert any("prod-chat" in note for note in calibration(tmp_path / "r.json").notes)
    assert calibration(ALONE).notes == ()


def test_other_files_of_a_folder_are_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "inputs.json").write_text('{"data": []}')
    (tmp_path / "r.json").write_text(ALONE.read_text())
    (tmp_path / "README.md").write_text("no result, and no name of one")
    report = calibration(tmp_path)
    assert report.sources == ("r.json",)
    (note,) = report.notes
    assert note.startswith("inputs.json is left out: no benchmark that is known")
    with pytest.raises(InputError, match="no benchmark that is known"):
        calibration(tmp_path / "inputs.json")


def test_a_broken_result_in_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(ALONE.read_text()[:100])
    with pytest.raises(InputError, match="not JSON"):
        calibration(tmp_path)


def test_nothing_to_calibrate_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file there ends in"):
        calibration(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        calibration(tmp_path / "none.json")
    burst = {**json.loads(ALONE.read_text()), "max_concurrency": None}
    (tmp_path / "burst.json").write_text(json.dumps(burst))
    with pytest.raises(InputError, match=r"no measurement in them: burst\.json is left out"):
        calibration(tmp_path)


@pytest.mark.parametrize(
    ("given", "error", "what"),
    [
        ({"max_model_len": 512}, InputError, "cannot have served this"),
        ({"prefix_hit_rate": 1.5}, InputError, "prefix_hit_rate"),
        ({"max_model_len": 10_000_000}, InputError, "max_model_len"),
        ({"gpu": "h900"}, UnknownFactError, "h900"),
        ({"max_num_seqs": 0}, InputError, "max_num_seqs"),
    ],
)
def test_a_server_that_cannot_be(given: dict[str, Any], error: type[Exception], what: str) -> None:
    with pytest.raises((error, InfeasibleError), match=what):
        calibration(ALONE, **given)


def test_what_is_a_thousand_times_off_is_no_server(tmp_path: Path) -> None:
    data = {**json.loads(ALONE.read_text()), "mean_tpot_ms": 0.001}
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="1,000 times off") as raised:
        calibration(tmp_path / "r.json")
    assert raised.value.where == "r.json"


def test_a_wait_without_end_is_no_wrong_unit(tmp_path: Path) -> None:
    """More arrives than is served: the first token comes when the run is over."""
    data = json.loads(next(RUNS.glob("*8.0qps*")).read_text())
    late = {**data, "request_rate": 500.0, "mean_ttft_ms": 2_000_000.0}
    (tmp_path / "r.json").write_text(json.dumps(late))
    report = calibration(tmp_path / "r.json")
    assert set(report.errors) == {"tpot_limited", "throughput_limited", "ttft_limited"}
    write_calibration(report, tmp_path / "c.yaml")
    assert latency_calibration(tmp_path / "c.yaml").ranges == report.fit.ranges


def test_a_server_faster_than_its_data_sheet_is_said(tmp_path: Path) -> None:
    data = json.loads(ALONE.read_text())
    for index in range(30):
        fast = {**data, "mean_tpot_ms": data["mean_tpot_ms"] / 3, "date": str(index)}
        fast["output_throughput"] = data["output_throughput"] * 3
        (tmp_path / f"{index}.json").write_text(json.dumps(fast))
    report = calibration(tmp_path)
    assert any("weight_read stopped at 1" in note for note in report.notes)
    assert report.fit.constants.weight_read == 1.0
