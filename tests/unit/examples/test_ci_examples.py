"""examples/ci and docs/check.md: their commands run in a repository like the one they are for."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[3]
CI = ROOT / "examples" / "ci"
GOOD = "vllm serve Qwen/Qwen3-8B --max-model-len 8192\n"
BAD = "vllm serve Qwen/Qwen3-8B --max-model-len 131072 --dtype bf16\n"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a script under deploy/ and a vllm-advisor in its own bin/."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "vllm-advisor"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m vllm_advisor "$@"\n')
    program.chmod(0o755)
    return tmp_path


def shell(command: str, repository: Path, script: str) -> subprocess.CompletedProcess[str]:
    (repository / "deploy" / "serve.sh").write_text(script)
    path = f"{repository / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", command],
        cwd=repository,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def advisor_commands(commands: list[str]) -> list[str]:
    found = [command for command in commands if command.startswith("vllm-advisor ")]
    assert found
    return found


def test_github_workflow(repository: Path) -> None:
    workflow = read(CI / "github-actions.yaml")
    assert {"pull_request", "push"} <= set(workflow[True])  # YAML 1.1 reads "on" as true
    assert workflow["permissions"]["security-events"] == "write"
    steps = workflow["jobs"]["check"]["steps"]
    annotate, write = advisor_commands([step.get("run", "") for step in steps])
    assert shell(annotate, repository, GOOD).returncode == 0
    done = shell(annotate, repository, BAD)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=deploy/serve.sh,line=1,")
    assert shell(write, repository, BAD).returncode == 0
    upload = next(s["with"] for s in steps if "upload-sarif" in s.get("uses", ""))
    log = json.loads((repository / upload["sarif_file"]).read_text())
    schema = json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-subset.json").read_text())
    jsonschema.validate(log, schema)
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == {"CTX001", "FLG003"}


def test_gitlab_job(repository: Path) -> None:
    job = read(CI / "gitlab-ci.yaml")["vllm-advisor"]
    quality, junit = advisor_commands(job["script"])
    reports = job["artifacts"]["reports"]
    assert job["artifacts"]["when"] == "always"  # also when the job fails
    assert shell(quality, repository, BAD).returncode == 0
    entries = json.loads((repository / reports["codequality"]).read_text())
    assert {entry["location"]["path"] for entry in entries} == {"deploy/serve.sh"}
    assert shell(junit, repository, BAD).returncode == 1
    suites = ET.parse(repository / reports["junit"]).getroot()  # noqa: S314 - our own
    assert suites.get("failures") == "2"
    assert shell(junit, repository, GOOD).returncode == 0


def test_pre_commit_hook(repository: Path) -> None:
    (hook,) = read(ROOT / ".pre-commit-hooks.yaml")
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False
    pattern = re.compile(hook["files"])
    for name in ("deploy/serve.sh", "values.yaml", "compose.yml", "vllm.service", "Dockerfile"):
        assert pattern.search(name)
    assert not pattern.search("README.md")
    (used,) = read(CI / "pre-commit-config.yaml")["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    command = f"{hook['entry']} {shlex.join(used['args'])}"
    assert shell(command, repository, GOOD).returncode == 0
    assert shell(command, repository, BAD).returncode == 1


def test_every_example_is_tried_here() -> None:
    names = {"github-actions.yaml", "gitlab-ci.yaml", "pre-commit-config.yaml"}
    assert {path.name for path in CI.iterdir()} == names


def documented(language: str) -> list[str]:
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "command",
    [line for block in documented("bash") for line in block.splitlines() if "vllm-advisor " in line and line[0] != "#"],
)  # fmt: skip
def test_commands_of_the_page_on_check_run(command: str, repository: Path) -> None:
    shell("vllm-advisor init --profile contract-review -o workload.yaml", repository, GOOD)
    done = shell(command, repository, GOOD)
    # On an L4 the whole length of the one given as words does not fit.
    assert done.returncode == (1 if "-- vllm serve" in command else 0), done.stderr


def test_the_suppression_and_the_file_of_the_page_on_check(repository: Path) -> None:
    (script,) = (block for block in documented("bash") if block.startswith("# vllm-advisor"))
    done = shell("vllm-advisor check deploy/serve.sh --fail-on warning", repository, script)
    assert done.returncode == 0
    assert "1 suppressed" in done.stdout
    (config,) = documented("yaml")
    (repository / ".vllm-advisor.yaml").write_text(config)
    done = shell("vllm-advisor check deploy/serve.sh -f json", repository, script)
    assert done.returncode == 0
    assert "FLG001" not in json.loads(done.stdout)["rules"]


def test_the_page_on_check_names_every_format_and_exit_code() -> None:
    from vllm_advisor import errors
    from vllm_advisor.cli.output import CheckFormat

    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+`|\d) \|", page, re.MULTILINE)
    named = {name.strip("`") for row in rows for name in row.split(", ")}
    codes = {errors.EXIT_NO, errors.EXIT_CANNOT_RUN, errors.EXIT_CANNOT_KNOW}
    assert named == {form.value for form in CheckFormat} | {"0", *map(str, codes)}
