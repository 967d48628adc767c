"""A memory calibration on the command line: written by report, taken by size, plan, estimate, check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_cli import run_cli

LOGS = Path(__file__).parents[2] / "data" / "startup_logs"
A100 = str(LOGS / "a100-0.31.0.log")
H200 = str(LOGS / "h200-0.10.2-tp2.log")
QWEN = "Qwen/Qwen3-Next-80B-A3B-Instruct"
SERVER = ("--gpu", "h200-sxm", "-tp", "2", "--max-num-batched-tokens", "8192")
OLD = ("--vllm-version", "0.10.2")


def run(*words: str, stdin: str = "") -> tuple[int, str, str]:
    done = run_cli(*words, stdin=stdin, env={"COLUMNS": "100"})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "memory.yaml"
    code, out, err = run("report", H200, "--model", QWEN, "--output", str(path))
    assert code == 0
    assert "Predicted and logged" in out
    assert err == f"wrote {path}; now: vllm-advisor size ... --calibration {path}\n"
    return path


def test_the_file_says_where_it_is_from(memory: Path) -> None:
    text = memory.read_text("utf-8")
    assert text.startswith("# Memory of one server")
    data: dict[str, Any] = yaml.safe_load(text)
    assert (data["kind"], data["log"], data["gpus"]) == ("memory", "h200-0.10.2-tp2.log", 2)
    assert data["terms"]["non_torch"] == {"predicted": 585189294, "logged": 1481763717, "line": 21}


def test_size_says_that_it_is_calibrated(memory: Path) -> None:
    words = ("size", QWEN, *SERVER, *OLD, "--calibration", str(memory))
    code, out, err = run(*words, "--gpu-memory-utilization", "0.9")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[2].startswith("calibrated by memory.yaml (")
    assert lines[2].endswith("): activations, non-torch")
    assert "N non-torch 1.38 GiB   K KV cache 44.59 GiB" in out
    assert "- memory.yaml calibrates activations and non-torch memory" in out
    code, out, _ = run(*words, "--format", "json")
    assert json.loads(out)["calibration"]["file"] == "memory.yaml"
    _, out, _ = run("size", QWEN, *SERVER, *OLD, "--format", "json")
    assert json.loads(out)["calibration"] is None


def test_estimate_and_check_take_it(memory: Path) -> None:
    given = ("--calibration", str(memory))
    tokens = ("--input-tokens", "1000", "--output-tokens", "100")
    code, out, _ = run("estimate", QWEN, *SERVER, *OLD, *tokens, *given)
    assert code == 0
    assert "- memory.yaml calibrates" in out
    command = ("--", "vllm", "serve", QWEN, "-tp", "2")
    code, out, _ = run("check", "--gpu", "h200-sxm", "--gpu-count", "2", *OLD, *given, *command)
    assert code == 0
    assert "memory.yaml calibrates" in out


def test_plan_takes_both_kinds(memory: Path, tmp_path: Path) -> None:
    results = str(Path(__file__).parents[2] / "data" / "bench_results")
    speed = tmp_path / "speed.yaml"
    server = ("--gpu", "h100-sxm", "--vllm-version", "0.19.0")
    assert run("calibrate", "qwen3-8b", results, *server, "--output", str(speed))[0] == 0
    workload = tmp_path / "workload.yaml"
    workload.write_text(
        f"model: {QWEN}\nvllm_version: '0.10.2'\nhardware: {{gpu: h200-sxm, count: 2}}\n"
        "constraints: {weight_quantization: forbidden}\nclasses:\n  - name: chat\n"
        "    prompt_tokens: {p50: 600, p95: 2000, max: 6000}\n"
        "    output_tokens: {p50: 200, p95: 500, max: 1000}\n    concurrent_requests: 30\n"
    )
    both = ("--calibration", str(speed), "--calibration", str(memory))
    code, out, err = run("plan", str(workload), *both)
    assert (code, err) == (0, "")
    assert "memory.yaml calibrates activations and non-torch memory" in " ".join(out.split())
    assert "(calibrated)" in " ".join(out.split())
    code, _, err = run("plan", str(workload), *both, "--calibration", str(memory))
    assert code == 2
    assert "both of the memory of h200-sxm" in err


def test_errors_name_the_place(memory: Path, tmp_path: Path) -> None:
    model = ("--model", QWEN)
    code, out, err = run("size", "qwen3-8b", "--gpu", "l4", "--calibration", str(memory))
    assert (code, out) == (2, "")
    assert "made on h200-sxm, not on l4" in err
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(memory.read_text().replace("line: 21", "line: none", 1))
    code, _, err = run("size", QWEN, *SERVER, *OLD, "--calibration", str(wrong))
    assert code == 2
    number = next(i for i, s in enumerate(wrong.read_text().splitlines(), 1) if "line: none" in s)
    assert f"--> {wrong}:{number}:" in err
    assert "terms.gpu_memory.line" in err
    code, _, err = run("report", H200, *model, "--calibration", str(memory), "-o", str(wrong))
    assert code == 2
    assert "bundled constants" in err


def test_nothing_is_written_where_nothing_can_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    refused = str(LOGS / "cpu-0.32.0-kv-cache.log")
    for words in ((A100,), (H200,), (refused, "--model", "qwen3-8b")):
        code, out, err = run("report", *words, "-o", str(path))
        assert (code, out) == (2, ""), words
        assert "no calibration can be made" in err
        assert "fix: " in err
    assert not path.exists()


def test_another_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text("mine\n")
    words = ("report", A100, "--gpu", "a100-sxm4-80", "--output", str(path))
    code, out, err = run(*words)
    assert (code, out, path.read_text()) == (2, "", "mine\n")
    assert "--overwrite" in err
    assert run(*words, "--overwrite")[0] == 0
    assert run(*words)[0] == 0  # the same again


def test_a_report_with_the_calibration_of_its_own_log_is_right(memory: Path) -> None:
    words = ("report", H200, "--model", QWEN, "--calibration", str(memory))
    code, out, _ = run(*words)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["KV", "cache", "44.59", "GiB", "44.59", "GiB", "same", "16"] in rows


def test_nothing_is_minus_nothing() -> None:
    _, out, _ = run("report", A100, "--gpu", "a100-sxm4-80")
    assert "(0.0 %)" in out
    assert "-0.0 %" not in out
    assert "+0.0 %" not in out
