"""``vllm-advisor verify`` as a user meets it: a process of its own, its streams, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
import yaml
from fake_openai import Fake, completion, finds, forgets_the_middle, serving
from forked_cli import run_cli
from policies import CONTRACTS

KEY = "sk-very-secret"
SVG = "{http://www.w3.org/2000/svg}"


def run(*words, env=None):
    return run_cli("verify", *words, env={"COLUMNS": "100", **(env or {})})


def needle(fake, document, *words, env=None):
    return run(
        "needle", "--base-url", fake.url, "--model", "tiny", "--document", str(document), *words,
        env=env,
    )  # fmt: skip


@pytest.mark.parametrize("words", [(), ("needle",), ("routes",)])
def test_help_begins_with_examples_and_loads_nothing_heavy(words):
    program = (
        "import sys; from vllm_advisor.cli import main\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "verify", *words, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.index("Examples:") < done.stdout.index("Options:")
    assert "vllm-advisor verify" in done.stdout
    loaded = set(done.stderr.split())
    assert "vllm_advisor.cli.verify" in loaded
    heavy = {"pydantic", "jinja2", "yaml", "rich", "vllm_advisor.api.verifying", "vllm"}
    assert not heavy & loaded


def test_found_in_a_table(document):
    with serving(Fake(key=KEY)) as fake:
        done = needle(fake, document, "--lengths", "1K,2k", "--depths", "10,90",
                      env={"VLLM_API_KEY": KEY})  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("passed: 4 of 4 needles found by tiny at ")
    table = [line.split() for line in lines if line.startswith("  ")]
    assert table[0] == ["depth", "1,024", "tokens", "2,000", "tokens"]
    assert table[1] == ["10", "%", "hit", "hit"]
    assert done.stderr.splitlines()[0] == "cell 1 of 4: 1,024 tokens, depth 10 %"
    assert KEY not in done.stdout + done.stderr


def test_not_found_exits_1_and_shows_answers_as_they_are_without_their_escapes(document):
    def model(prompt):
        said = forgets_the_middle(prompt)
        return said if said.startswith("It is") else "\x1b[2J[bold]none[/bold]\r\u202e!"

    with serving(Fake(model=model)) as fake:
        done = needle(fake, document, "--lengths", "2000")
    assert done.returncode == 1
    assert "failed: 2 of 3 needles found" in done.stdout
    assert r"2,000 tokens, depth 50 %: \x1b[2J[bold]none[/bold] \u202e!" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data(form, document):
    with serving(Fake(model=lambda _: "\x1b[2J\ud800no")) as fake:
        done = needle(fake, document, "--lengths", "1000", "--format", form,
                      "--min-hit-rate", "0")  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout) if form == "json" else yaml.safe_load(done.stdout)
    assert data["schema_version"] == "1"
    assert [c["outcome"] for c in data["cells"]] == ["miss"] * 3
    assert "\x1b" not in done.stdout


def test_a_plot(document, tmp_path):
    path = tmp_path / "needle.svg"
    with serving(Fake(max_model_len=1500)) as fake:
        done = needle(fake, document, "--lengths", "1000,2000", "--plot", str(path))
    assert done.returncode == 1
    assert "2,000 tokens, depth 10 %: refused: This model's maximum context" in done.stdout
    assert f"wrote {path}" in done.stderr
    texts = [e.text for e in ET.parse(path).iter(f"{SVG}text")]  # noqa: S314
    assert texts.count("hit") == 3
    assert texts.count("refused") == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["needle.svg", "river.txt"]


def test_a_connection_that_is_lost_leaves_no_plot(document, tmp_path):
    with serving(Fake(hang_up_at=3)) as fake:
        done = needle(fake, document, "--plot", str(tmp_path / "needle.svg"))
    assert done.returncode == 3
    assert "error: the connection was lost" in done.stderr
    assert f"--> {fake.url}/v1/chat/completions" in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["river.txt"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--plot", "absent/x.svg"), 2, "cannot write there"),
        (("--plot", "x.png"), 2, "x.png is no .svg"),
        (("--min-hit-rate", "1.5"), 2, "less than or equal to 1"),
        (("--model", "other"), 2, "it has: tiny"),
        (("--api-key-env", "ABSENT"), 2, "ABSENT is not set"),
        (("--header", "x"), 2, "NAME=VALUE"),
        (("--document", "absent.txt"), 2, "No such file"),
        (("--base-url", "http://127.0.0.1:1"), 3, "cannot reach the server"),
    ],
)
def test_what_cannot_be_done(words, code, message, document):
    with serving(Fake()) as fake:
        done = needle(fake, document, *words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_key_is_asked_for(document):
    with serving(Fake(key=KEY)) as fake:
        done = needle(fake, document)
    assert done.returncode == 3
    assert "fix: put it into VLLM_API_KEY, or name its variable: --api-key-env NAME" in done.stderr


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "routing.yaml"
    path.write_text(yaml.safe_dump({"schema_version": "1", **CONTRACTS.to_dict()}))
    return path


def test_routes_that_land(plan):
    def reply(asked, headers):
        name = headers.get("x-workload", asked["model"])
        instance = "long-docs" if name == "long-docs" else "chat"
        return 200, completion("ok", 20), {"x-vllm-instance": instance}

    with serving(Fake(reply=reply)) as fake:
        words = ("routes", str(plan.parent), "--base-url", fake.url, "--only", "header")
        table = run(*words)
        data = run(*words, "--only", "model", "--format", "json")
        wrong = run("routes", str(plan), "--base-url", fake.url, "--overlong",
                    "--max-probe-tokens", "9000")  # fmt: skip
    assert table.returncode == 0, table.stderr
    lines = table.stdout.splitlines()
    assert lines[0].startswith("passed: 3 of 3 probes landed as planned at ")
    rows = [line.split() for line in lines if line.startswith("  ")]
    assert rows[1] == ["header", "chat", "20", "chat", "chat", "header", "ok"]
    assert data.returncode == 0
    assert len(json.loads(data.stdout)["probes"]) == 6
    # The fake counts 20 tokens whatever it is sent: nothing is wrong, the over-long probe is open.
    assert wrong.returncode == 0
    assert "overlong 153,600: 20 tokens, as they are counted there, are not too long" in (
        " ".join(wrong.stdout.split())
    )


def test_routes_that_go_wrong_or_nobody_knows_where(plan):
    def reply(_asked, _headers):
        return 200, completion("ok", 20), {"x-vllm-instance": "chat"}

    with serving(Fake(reply=reply)) as fake:
        wrong = run("routes", str(plan), "--base-url", fake.url, "--only", "header")
    assert wrong.returncode == 1
    assert "header long-docs: chat answered; the plan sends it to long-docs" in wrong.stdout
    with serving(Fake(name=CONTRACTS.model, max_model_len=None, model=finds)) as fake:
        unknown = run("routes", str(plan), "--base-url", fake.url, "--only", "header")
    assert unknown.returncode == 3
    assert "error: nobody says where 3 of 3 probes landed" in unknown.stderr
    assert "fix: --instance NAME=URL" in unknown.stderr
    assert "no header of the answer names an instance" in unknown.stdout


def test_routes_without_a_plan(tmp_path):
    done = run("routes", str(tmp_path), "--base-url", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "neither routing.yaml nor plan.yaml" in done.stderr
