"""A start-up log as a calibration: what is in it, and that its own start is predicted as logged."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from startup_rows import log_lines, recorded_starts

from vllm_advisor import check, estimate, plan, size
from vllm_advisor.api import StartupReport, report_startup, write_memory_calibration
from vllm_advisor.errors import InputError, OutputError
from vllm_advisor.knowledge.calibrations import read_calibrations
from vllm_advisor.units import GIB

LOGS = Path(__file__).parents[2] / "data" / "startup_logs"
RECORDED: dict[str, dict[str, Any]] = {
    "a100-0.31.0.log": {"gpu": "a100-sxm4-80"},
    "gb200-0.26.0-tp4.log": {"gpu": "gb200", "model": "nvidia/GLM-5.2-NVFP4"},
    "h200-0.10.2-tp2.log": {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct"},
}
# Five figures are rounded to 0.01 GiB, and so is what they leave.
ROUNDED = 0.03 * GIB
QWEN = "Qwen/Qwen3-Next-80B-A3B-Instruct"
OF_LOG: dict[str, Any] = {
    "gpu": "h200-sxm",
    "vllm_version": "0.10.2",
    "tensor_parallel_size": 2,
    "max_num_batched_tokens": 8192,
    "gpu_memory_utilization": 0.9,
}

START = "Free memory on device (78.6/79.18 GiB) on startup. Desired GPU memory utilization is"
CONSUMED = (
    "15.60 GiB for consumed memory (weights + non-torch), 2.0 GiB for peak activation, and 0.3 GiB "
    "for CUDAGraph memory."
)
HUGE = (
    "Actual usage is 15.27 GiB for weight, 0.1 GiB for peak activation, 70.0 GiB for non-torch "
    "memory, and 0 GiB for CUDAGraph memory."
)
SHORT = (
    "ValueError: Free memory on device (3.1/79.18 GiB) on startup is less than desired GPU memory "
    "utilization (0.92, 72.85 GiB)."
)


def report(name: str) -> StartupReport:
    return report_startup(LOGS / name, **RECORDED[name])


@pytest.fixture(scope="module")
def h200() -> dict[str, Any]:
    return report("h200-0.10.2-tp2.log").calibration()


def again(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The server of a calibration, sized with it."""
    sized = size(
        made["model"],
        gpu=made["gpu"],
        vllm_version=made["vllm_version"],
        calibration=made,
        **{**made["engine_args"], **more},
    )
    return sized.to_dict()


@pytest.mark.parametrize("name", RECORDED)
def test_its_own_start_is_predicted_as_logged(name: str) -> None:
    read = report(name)
    memory = again(read.calibration())["memory"]
    logged = {t["term"]: t["logged"] for t in read.to_dict()["comparison"]}
    assert memory["kv_cache"] == pytest.approx(logged["KV cache"], abs=0.01 * GIB)
    assert memory["non_torch"] == pytest.approx(logged["non-torch"], abs=2)


def test_what_the_log_of_an_h200_says(h200: dict[str, Any]) -> None:
    assert h200["kind"] == "memory"
    assert (h200["gpu"], h200["gpus"], h200["vllm_version"]) == ("h200-sxm", 2, "0.10.2")
    assert h200["engine_args"]["max_num_batched_tokens"] == 8192
    terms = h200["terms"]
    # no graphs: 0.10 takes none from the cache; weights as predicted
    assert list(terms) == ["gpu_memory", "before_start", "activations", "non_torch"]
    assert terms["non_torch"]["logged"] == round(1.38 * GIB)
    assert terms["non_torch"]["predicted"] / GIB == pytest.approx(0.545, abs=0.001)
    assert terms["before_start"]["logged"] / GIB == pytest.approx(139.81 - 139.21)
    assert {term["line"] for term in terms.values()} == {21}
    # 125.829 - 74.281 - 5.58 - 1.38
    data = again(h200)
    assert data["memory"]["kv_cache"] / GIB == pytest.approx(44.588, abs=0.001)
    assert data["confidence"] == "medium"  # of the version's cache, not of its memory
    assert data["calibration"]["applied"]["non_torch"] == "measured:calibration#terms.non_torch"


def test_graphs_and_activations_of_a_gb200() -> None:
    made = report("gb200-0.26.0-tp4.log").calibration()
    terms = made["terms"]
    assert terms["cuda_graphs"]["logged"] == round(4.99 * GIB)
    assert terms["weights"]["logged"] == round(106.69 * GIB)
    assert "max_num_seqs" in made["notes"][0]
    memory = again(made)["memory"]
    assert memory["cuda_graphs"] == round(4.99 * GIB)
    assert memory["activations"] == round(6.31 * GIB)
    # half the tokens: the ratio 6.31 / predicted stays
    ratio = terms["activations"]["logged"] / terms["activations"]["predicted"]
    args = {**made["engine_args"], "max_num_batched_tokens": 4096}
    half = size(made["model"], gpu="gb200", vllm_version="0.26.0", **args)
    predicted = half.to_dict()["memory"]["activations"]
    data = again(made, max_num_batched_tokens=4096)
    assert data["memory"]["activations"] == pytest.approx(ratio * predicted, abs=1)
    assert any("max_num_batched_tokens is 4096 and was 8192" in a for a in data["assumptions"])


def test_recorded_starts_are_predicted_as_logged() -> None:
    """All that can be read back: models whose checkpoint is the one that was loaded."""
    seen = 0
    for row in recorded_starts():
        read = report_startup(row["id"], lines=log_lines(row), gpu=row["gpu"])
        made: dict[str, Any] | None = None
        with contextlib.suppress(InputError):
            made = read.calibration()
        if made is None:
            continue
        memory = again(made)["memory"]
        assert abs(memory["kv_cache"] - row["logged_gib"]["kv_cache"] * GIB) < ROUNDED, row["id"]
        seen += 1
    assert seen >= 40


def of_lines(*lines: str, **given: Any) -> StartupReport:
    head = (
        "vLLM API server version 0.31.0",
        "non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 8192}",
    )
    return report_startup("startup.log", lines=(*head, *lines), **{"gpu": "h100-sxm", **given})


def test_what_has_no_line_follows_from_the_cache() -> None:
    made = of_lines(
        "Model loading took 15.27 GiB memory and 5 seconds",
        "Estimated CUDA graph memory: 0.90 GiB total",
        "Available KV cache memory: 52.00 GiB",
    ).calibration()
    rest = made["terms"]["rest"]
    assert rest["of"] == ["activations", "non_torch"]
    memory = size("qwen3-8b", gpu="h100-sxm", vllm_version="0.31.0").to_dict()["memory"]
    # the weights are 15.27 GiB as predicted; 0.90 are of the graphs
    left = memory["requested"] - memory["weights"] - round(0.9 * GIB) - 52 * GIB
    assert rest["logged"] == left
    assert "weights" not in made["terms"]
    assert rest["line"] == 5
    assert again(made)["memory"]["kv_cache"] == 52 * GIB


def test_a_sum_of_activations_and_graphs_is_split_where_the_graphs_are_known() -> None:
    lines = (
        "Model loading took 15.27 GiB memory and 5 seconds",
        f"{START} (0.92, 72.85 GiB). Actual usage is {CONSUMED}",
        "Available KV cache memory: 55.25 GiB",
    )
    terms = of_lines(*lines).calibration()["terms"]
    assert terms["activations_and_cuda_graphs"]["logged"] == 2 * GIB
    terms = of_lines("Estimated CUDA graph memory: 0.90 GiB total", *lines).calibration()["terms"]
    assert terms["activations"]["logged"] == 2 * GIB - round(0.9 * GIB)
    assert (terms["cuda_graphs"]["logged"], terms["cuda_graphs"]["line"]) == (round(0.9 * GIB), 3)
    assert terms["non_torch"]["logged"] == round(15.6 * GIB) - round(15.27 * GIB)


def test_a_gpu_that_others_use_says_nothing_of_what_is_gone_before_the_start() -> None:
    made = of_lines(
        "Free memory on device (60.0/79.18 GiB) on startup. Desired GPU memory utilization is "
        "(0.7, 55.43 GiB). Actual usage is 15.27 GiB for weight, 1.0 GiB for peak activation, 0.1 "
        "GiB for non-torch memory, and 0.3 GiB for CUDAGraph memory.",
    ).calibration()
    assert "before_start" not in made["terms"]
    assert "19.18 GiB of the GPU were gone" in made["notes"][-1]


@pytest.mark.parametrize(
    ("lines", "given", "said"),
    [
        (("Model loading took 15.27 GiB and 5 seconds",), {}, "beside the weights"),
        (("Available KV cache memory: 50 GiB",), {"gpu": None}, "does not name the GPU"),
        (
            ("Model loading took 8.10 GiB and 5 seconds", "Available KV cache memory: 50 GiB"),
            {},
            "8.10 GiB of weights were loaded",
        ),
        (
            ("Model loading took 15.27 GiB and 5 seconds", "Available KV cache memory: 70 GiB"),
            {},
            "larger than what else was logged",
        ),
        (
            (HUGE,),
            {},
            "terms.non_torch.logged",
        ),
        (
            (SHORT,),
            {},
            "beside the weights",
        ),
    ],
)
def test_nothing_to_compare_is_an_error(
    lines: tuple[str, ...], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        of_lines(*lines, **given).calibration()
    assert "no calibration can be made" in caught.value.what
    assert said in caught.value.what
    assert caught.value.fix


def test_a_cpu_has_none() -> None:
    with pytest.raises(InputError, match="ran on a CPU"):
        report_startup(LOGS / "cpu-0.32.0-started.log", model="qwen3-8b").calibration()


def test_the_file_is_what_the_plain_data_is(tmp_path: Path) -> None:
    read = report("h200-0.10.2-tp2.log")
    path = tmp_path / "memory.yaml"
    write_memory_calibration(read, path)
    (file,) = read_calibrations(path).memory
    (data,) = read_calibrations(read.calibration()).memory
    assert file.keys == data.keys
    write_memory_calibration(read, path)  # the same again
    other = report("a100-0.31.0.log")
    with pytest.raises(OutputError, match="already there"):
        write_memory_calibration(other, path)
    write_memory_calibration(other, path, overwrite=True)
    assert "a100-sxm4-80" in path.read_text()


def test_another_gpu_or_family_of_versions_is_refused(h200: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="made on h200-sxm, not on h100-sxm"):
        size(QWEN, calibration=h200, **{**OF_LOG, "gpu": "h100-sxm"})
    with pytest.raises(InputError, match=r"made with vLLM 0\.10\.2, and 0\.31\.0 measures"):
        size(QWEN, calibration=h200, **{**OF_LOG, "vllm_version": "0.31.0"})
    with pytest.raises(InputError, match="none is named"):
        size("qwen3-8b", kv_cache_memory_bytes="4GiB", calibration=h200)


def test_another_version_of_the_family_is_said(h200: dict[str, Any]) -> None:
    sized = size(QWEN, calibration=h200, **{**OF_LOG, "vllm_version": "0.11.0"})
    assert any("0.11.0 is taken to spend the same" in a.text for a in sized.assumptions)
    assert sized.to_dict()["memory"]["non_torch"] == round(1.38 * GIB)


def test_of_another_model_only_what_is_the_gpus_holds(h200: dict[str, Any]) -> None:
    plain = size("qwen3-8b", **OF_LOG).to_dict()["memory"]
    sized = size("qwen3-8b", calibration=h200, **OF_LOG)
    memory = sized.to_dict()["memory"]
    assert memory["activations"] == plain["activations"]
    assert memory["non_torch"] == round(1.38 * GIB)
    assert any("the rest depends on the model" in a.text for a in sized.assumptions)
    one = size("qwen3-8b", calibration=h200, **{**OF_LOG, "tensor_parallel_size": 1})
    alone = size("qwen3-8b", **{**OF_LOG, "tensor_parallel_size": 1}).to_dict()["memory"]
    assert one.to_dict()["memory"]["non_torch"] == alone["non_torch"]
    assert any("tensor_parallel_size is 1 and was 2" in a.text for a in one.assumptions)


def test_the_same_model_has_many_places(h200: dict[str, Any]) -> None:
    moved = {**h200, "model": "/models/Qwen3-Next-80B-A3B-Instruct"}
    assert again({**moved, "model": QWEN})["memory"] == again(h200)["memory"]
    sized = size(QWEN, calibration=moved, **OF_LOG)
    assert "activations" in sized.to_dict()["calibration"]["applied"]


def test_other_constants_are_noticed(h200: dict[str, Any]) -> None:
    term = {**h200["terms"]["activations"], "predicted": GIB}
    other = {**h200, "terms": {**h200["terms"], "activations": term}}
    with pytest.raises(InputError, match=r"terms\.activations: 1\.00 GiB is not what is predicted"):
        size(QWEN, calibration=other, **OF_LOG)
    strange = {**h200, "engine_args": {**h200["engine_args"], "no_such_flag": 1}}
    with pytest.raises(InputError, match="cannot be sized"):
        size(QWEN, calibration=strange, **OF_LOG)
    with pytest.raises(InputError, match="none of vLLM's"):
        size(QWEN, calibration={**h200, "engine_args": {"gpu": "l4"}}, **OF_LOG)


def test_what_is_gone_before_the_start_is_that_of_the_log() -> None:
    """139.81 GiB less 0.60: 0.99 of it is free by the log, and is not by the median of others."""
    made = report("h200-0.10.2-tp2.log").calibration()
    args = {**made["engine_args"], "gpu_memory_utilization": 0.99}
    plain = size(QWEN, gpu="h200-sxm", vllm_version="0.10.2", **args)
    assert any("may refuse with 'Free memory" in a.text for a in plain.assumptions)
    assert not any("may refuse with 'Free memory" in a for a in again(made, **args)["assumptions"])


def test_a_report_takes_the_calibration_of_another_log(h200: dict[str, Any]) -> None:
    read = report_startup(LOGS / "h200-0.10.2-tp2.log", model=QWEN, calibration=h200)
    assert read.comparison.summary == ""
    with pytest.raises(InputError, match="bundled constants"):
        read.calibration()
    with pytest.raises(InputError, match="made on h200-sxm, not on a100"):
        report_startup(LOGS / "a100-0.31.0.log", gpu="a100-sxm4-80", calibration=h200)
    with pytest.raises(InputError, match="no prediction to calibrate"):
        report_startup(LOGS / "a100-0.31.0.log", calibration=h200)


WORKLOAD = """
model: Qwen/Qwen3-Next-80B-A3B-Instruct
vllm_version: "0.10.2"
hardware: {gpu: h200-sxm, count: 2}
classes:
  - name: chat
    prompt_tokens: {p50: 600, p95: 2000, max: 6000}
    output_tokens: {p50: 200, p95: 500, max: 1000}
    concurrent_requests: 30
constraints: {weight_quantization: forbidden}
"""


def test_plan_spends_what_the_log_says(h200: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    write_memory_calibration(report("h200-0.10.2-tp2.log"), path)
    made = plan("workload.yaml", text=WORKLOAD, calibration=[path]).to_dict()
    figures = {f["id"]: f for f in made["figures"]}
    non_torch = figures["chat.memory.non_torch"]
    assert non_torch["value"] == round(1.38 * GIB)
    assert non_torch["source"] == "measured:memory.yaml#terms.non_torch"
    assert figures["chat.memory.activations"]["source"].startswith("measured:memory.yaml#")
    assert any(a["id"] == "memory-calibrated-activations-non_torch" for a in made["assumptions"])
    with pytest.raises(InputError, match="made on h200-sxm, not on h100-sxm"):
        plan("workload.yaml", text=WORKLOAD, hardware_gpu="h100-sxm", calibration=h200)


@pytest.mark.parametrize(
    ("cheap", "said"),
    [
        ("h200-sxm", "memory.yaml calibrates activations and non-torch memory"),
        ("b200", "no calibration is of b200, and memory.yaml of h200-sxm says nothing of it"),
    ],
)
def test_of_several_gpu_types_one_may_be_calibrated(tmp_path: Path, cheap: str, said: str) -> None:
    path = tmp_path / "memory.yaml"
    write_memory_calibration(report("h200-0.10.2-tp2.log"), path)
    offers = ", ".join(
        f"{{gpu: {gpu}, count: 2, usd_per_gpu_hour: {1 if gpu == cheap else 50}}}"
        for gpu in ("h200-sxm", "b200")
    )
    text = WORKLOAD.replace("{gpu: h200-sxm, count: 2}", f"{{any_of: [{offers}]}}")
    made = plan("workload.yaml", text=text, calibration=path).to_dict()
    assert made["hardware"]["gpu"] == cheap
    assert any(said in a["text"] for a in made["assumptions"])


def test_estimate_and_check_take_it_as_well(h200: dict[str, Any]) -> None:
    load = {"input_tokens": 1000, "output_tokens": 100}
    said = estimate(QWEN, calibration=h200, **load, **OF_LOG).to_dict()
    assert said["memory_calibration"]["applied"]["non_torch"]
    assert "memory_calibration" not in estimate(QWEN, **load, **OF_LOG).to_dict()
    words = ["vllm", "serve", QWEN, "-tp", "2", "--max-num-batched-tokens", "8192"]
    given = {"gpu": "h200-sxm", "gpu_count": 2, "vllm_version": "0.10.2"}
    checked = check(words, calibration=h200, **given).to_dict()
    (figures,) = checked["figures"].values()
    assert figures["memory"]["non_torch"] == round(1.38 * GIB)
    assert any("calibrates activations" in note["message"] for note in checked["notes"])
    with pytest.raises(InputError, match="made on h200-sxm"):
        check(["vllm", "serve", "Qwen/Qwen3-8B"], gpu="l4", calibration=h200)


def test_rules_know_what_was_gone_before_the_start(h200: dict[str, Any]) -> None:
    """0.98 leaves 2.80 GiB: 0.64 beside the 2.16 that others lost, 2.20 beside the 0.60 here."""
    words = ["vllm", "serve", QWEN, "-tp", "2", "--gpu-memory-utilization", "0.98"]
    given = {"gpu": "h200-sxm", "gpu_count": 2, "vllm_version": "0.10.2"}
    plain, logged = (check(words, **given, calibration=c) for c in (None, h200))
    assert "PRF006" in {f.rule for f in plain.findings}
    assert "PRF006" not in {f.rule for f in logged.findings}


def test_no_bundled_fact_is_changed(h200: dict[str, Any]) -> None:
    before = size(QWEN, **OF_LOG).to_dict()
    again(h200)
    assert size(QWEN, **OF_LOG).to_dict() == before
    assert before["calibration"] is None
