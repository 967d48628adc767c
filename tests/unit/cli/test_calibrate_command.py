"""vllm-advisor calibrate as a user meets it: result files, a table, a file, and its use."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from forked_cli import run_cli

from vllm_advisor.knowledge.latency_constants import load_latency

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "bench_results"
ALONE = str(next((DATA / "vllm").glob("*concurrency1-*")))
SERVER = ("--gpu", "h100-sxm", "--vllm-version", "0.19.0")
LOAD = ("--input-tokens", "1000", "--output-tokens", "200", "--concurrency", "8")


def run(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    done = run_cli(*words, cwd=cwd, env={"COLUMNS": "100"})
    return done.returncode, done.stdout, done.stderr


def test_the_table_says_measured_before_and_after() -> None:
    code, out, err = run("calibrate", "qwen3-8b", str(DATA), *SERVER)
    assert (code, err) == (0, "")
    assert out.startswith("Qwen/Qwen3-8B on h100-sxm, 13 measurements\nvLLM 0.19.0\n")
    data = json.loads(Path(ALONE).read_text())
    first = out[out.index("concurrency1-") :].splitlines()[0].split()
    assert f"{data['mean_tpot_ms']:.1f}" == first[-6]
    for heading in ("measurement", "Constants", "Median error"):
        assert f"\n{heading}" in out or f"  {heading}" in out
    before = re.escape(f"{load_latency().constants.weight_read:.4g}")
    assert re.search(rf"weight_read +{before} +0\.6\d+ +-\d", out)
    assert "metrics.txt has no elapsed time" in out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_machines_get_the_same(form: str) -> None:
    code, out, err = run("calibrate", "qwen3-8b", ALONE, *SERVER, "--format", form)
    assert (code, err) == (0, "")
    report = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert report["schema_version"] == "1"
    assert report["errors"]["tpot"]["measurements"] == 1
    assert report["engine_args"] == {}


def test_a_file_is_written_and_used(tmp_path: Path) -> None:
    words = ("calibrate", "qwen3-8b", str(DATA), *SERVER, "--output", "c.yaml")
    code, _, err = run(*words, cwd=tmp_path)
    assert code == 0
    assert err == "wrote c.yaml; now: vllm-advisor estimate ... --calibration c.yaml\n"
    (written,) = tmp_path.iterdir()
    given = ("estimate", "qwen3-8b", *SERVER, *LOAD)
    plain = json.loads(run(*given, "-f", "json")[1])
    fitted = json.loads(run(*given, "-f", "json", "--calibration", str(written))[1])
    assert fitted["tpot_ms"]["point"] > 1.05 * plain["tpot_ms"]["point"]
    assert (plain["confidence"], fitted["confidence"]) == ("medium", "high")
    assert "(calibrated)" in fitted["constants"]["origin"]
    code, table, _ = run(*given, "--calibration", str(written))
    assert "Fitted to 13 measurements of Qwen/Qwen3-8B on h100-sxm (calibrated)" in table


def test_other_content_is_kept_unless_asked(tmp_path: Path) -> None:
    kept = tmp_path / "c.yaml"
    kept.write_text("mine")
    words = ("calibrate", "qwen3-8b", ALONE, *SERVER, "--output", str(kept))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "already there, with other content" in err
    assert "fix: --overwrite" in err
    assert kept.read_text() == "mine"
    assert run(*words, "--overwrite")[0] == 0
    assert kept.read_text().startswith("# Constants")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("qwen3-8b", ALONE, "--gpu", "h900"), 3, "h900"),
        (("no-such-model-here", ALONE, *SERVER), 3, "no-such-model-here"),
        (("qwen3-8b", "none.json", *SERVER), 2, "cannot read: No such file or directory"),
        (("qwen3-8b", str(ROOT / "README.md"), *SERVER), 2, "this is no benchmark's result"),
        (("qwen3-8b", ALONE, *SERVER, "--max-model-len", "512"), 2, "cannot have served this"),
        (("qwen3-8b", ALONE, *SERVER, "--calibration", "none.yaml"), 2, "cannot read"),
        (("qwen3-8b", ALONE, *SERVER, "--set", "nonsense=1"), 2, "nonsense"),
        (("llama-3.1-405b-instruct", ALONE, *SERVER), 1, "vLLM would not start"),
    ],
)
def test_what_cannot_be_is_said_in_plain_words(
    words: tuple[str, ...], code: int, said: str
) -> None:
    found, out, err = run("calibrate", *words)
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert said in err
    assert "Traceback" not in err


def test_a_calibration_of_another_gpu_is_refused(tmp_path: Path) -> None:
    written = str(tmp_path / "c.yaml")
    run("calibrate", "qwen3-8b", ALONE, *SERVER, "--output", written)
    code, out, err = run("estimate", "qwen3-8b", "--gpu", "l40s", *LOAD, "--calibration", written)
    assert (code, out) == (2, "")
    assert "this calibration was made on h100-sxm, not on l40s" in err
    assert "--> --calibration c.yaml" in err


def test_the_commands_and_the_program_of_the_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "calibrate.md").read_text()
    commands = re.findall(r"^vllm-advisor (.+)$", page, re.MULTILINE)
    assert len(commands) == 2
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for command in commands:
        code, out, _ = run(*shlex.split(command), cwd=tmp_path)
        assert (code, bool(out)) == (0, True), command
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    run_in = {"__name__": "page"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        exec(program, run_in)  # noqa: S102
    assert (tmp_path / "calibration.yaml").is_file()


def test_help_opens_with_examples() -> None:
    code, out, _ = run("calibrate", "--help")
    assert code == 0
    assert out.index("vllm-advisor calibrate qwen3-8b results/") < out.index("--gpu ")
