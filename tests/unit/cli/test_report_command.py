"""vllm-advisor report as a user meets it: tables, formats, exit codes, standard input, kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from forked_cli import run_cli

LOGS = Path(__file__).parents[2] / "data" / "startup_logs"
A100 = str(LOGS / "a100-0.31.0.log")
REFUSED = LOGS / "cpu-0.32.0-kv-cache.log"


def run(*words: str, stdin: str | bytes = "", path: str | None = None) -> tuple[int, str, str]:
    env = {"COLUMNS": "100"} | ({"PATH": path} if path else {})
    done = run_cli("report", *words, stdin=stdin, env=env)
    return done.returncode, done.stdout, done.stderr


def test_a_table_of_predicted_and_logged() -> None:
    code, out, err = run(A100, "--gpu", "a100-sxm4-80")
    assert (code, err) == (0, "")
    assert out.startswith("meta-llama/Llama-3.1-8B-Instruct on a100-sxm4-80: started\n")
    lines = [line.split() for line in out.splitlines()]
    weights = next(line for line in lines if line[:1] == ["weights"])
    assert weights[1:5] == ["14.99", "GiB", "15.00", "GiB"]
    assert ["maximum", "concurrency", "3.51x", "of", "131,072", "tokens", "4"] in lines


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_machines_get_the_same(form: str) -> None:
    code, out, err = run(A100, "--format", form)
    assert (code, err) == (0, "")
    data = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert data["schema_version"] == "1"
    assert [m["fact"] for m in data["missing"]] == ["gpu"]
    tokens = next(f for f in data["logged"]["facts"] if f["id"] == "kv_tokens")
    assert (tokens["value"], tokens["unit"], tokens["line"]) == (460_496, "tokens", 4)


def test_a_refusal_is_a_no() -> None:
    code, out, _ = run(str(REFUSED))
    assert code == 1
    assert "fix: --max-model-len 32640, the longest that fits" in out


def test_standard_input_of_any_bytes() -> None:
    code, out, _ = run("-", stdin=b"\xff\xfe\n" + Path(A100).read_bytes())
    assert code == 0
    assert "arguments (line 2)" in out


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        (("-",), "hello\n", 2, "no line of a vLLM start-up is in it"),
        ((), "", 2, "no log is named"),
        (("no-such.log",), "", 2, "cannot read"),
        ((A100, "--kubectl", "vllm-0"), "", 2, "exclude each other"),
        ((A100, "--namespace", "llm"), "", 2, "name a pod's log"),
        ((A100, "--gpu", "no-such-gpu"), "", 3, "no-such-gpu"),
        ((A100, "--vllm-version", "new"), "", 2, "new"),
        (("--kubectl", "-oyaml"), "", 2, "no name of a pod"),
    ],
)
def test_errors_name_the_place(words: tuple[str, ...], stdin: str, code: int, said: str) -> None:
    got, out, err = run(*words, stdin=stdin)
    assert (got, out) == (code, "")
    assert said in err
    assert "bug" not in err


def test_a_pod_is_read_by_kubectl(tmp_path: Path) -> None:
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\ncat {REFUSED}\n')
    fake.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    words = ("--kubectl", "vllm-0", "-n", "llm", "-c", "server", "--previous")
    code, out, _ = run(*words, path=path)
    assert code == 1
    assert "Why it did not start" in out
    given = (tmp_path / "words").read_text().strip()
    assert given == "logs vllm-0 --namespace=llm --container=server --previous"
    fake.write_text('#!/bin/sh\necho "Error from server (NotFound): pods not found" >&2\nexit 1\n')
    code, _, err = run("--kubectl", "vllm-0", path=path)
    assert code == 3
    assert "NotFound" in err
