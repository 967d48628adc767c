"""``check --workload``: which requests reach which command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from forked_cli import run_cli

from vllm_advisor.api.checking import CheckReport, check
from vllm_advisor.errors import InputError

TRAFFIC = """\
classes:
  - {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 40}
  - {name: books, prompt_tokens: 60000, output_tokens: 1000, concurrent_requests: 2}
"""
CHAT = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 64\n"
BOOKS = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --max-num-seqs 8\n"


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    path = tmp_path / "traffic.yaml"
    path.write_text(TRAFFIC, encoding="utf-8")
    return path


def _rules(report: CheckReport) -> list[tuple[int, str]]:
    return sorted((f.location.line, f.rule) for f in report.findings)


def test_a_single_command_serves_every_class(traffic: Path) -> None:
    found = check("serve.sh", text=CHAT, workload=traffic)
    assert _rules(found) == [(1, "CTX011")]


def test_a_class_goes_to_the_shortest_context_that_holds_it(traffic: Path) -> None:
    found = check("serve.sh", text=BOOKS + CHAT, gpu="h100-sxm", gpu_count=2, workload=traffic)
    assert _rules(found) == []


def test_a_class_that_nothing_holds_is_reported_once(traffic: Path) -> None:
    short = CHAT.replace("8192", "4096")
    assert _rules(check("serve.sh", text=short + CHAT, workload=traffic)) == [(2, "CTX011")]


def test_classes_may_be_named(traffic: Path) -> None:
    assert _rules(check("serve.sh", text=CHAT, workload=traffic, classes=["chat"])) == []
    with pytest.raises(InputError, match="no class mail"):
        check("serve.sh", text=CHAT, workload=traffic, classes=["mail"])


def test_replicas_and_equal_commands_share_the_requests(traffic: Path) -> None:
    few = CHAT.replace("--max-num-seqs 64", "--max-num-seqs 20")
    only = {"gpu": "h100-sxm", "workload": traffic, "classes": ["chat"]}
    assert _rules(check("serve.sh", text=few, **only)) == [(1, "PRF020")]
    assert _rules(check("serve.sh", text=few, replicas=2, **only)) == []
    assert _rules(check("serve.sh", text=few + few, **only)) == []


def test_a_command_of_another_model_gets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(
        "model: meta-llama/Llama-3.1-8B-Instruct\nhardware: {gpu: h100-sxm}\n" + TRAFFIC,
        encoding="utf-8",
    )
    other = "vllm serve Qwen/Qwen3-8B --max-model-len 4096\n"
    found = check("serve.sh", text=other + BOOKS + CHAT, workload=path)
    assert _rules(found) == []
    reasons = {n.reason for n in found.not_checked}
    assert "no class of the workload is for this command" in reasons


def test_retrieval_and_bounded_history_shorten_what_arrives(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    books = "{name: books, prompt_tokens: 60000, output_tokens: 1000, concurrent_requests: 2, "
    rag = "\nrag: {available: true, top_k: 5, chunk_tokens: 800, question_tokens: 300}\n"
    for needs, more, expected in (
        ("lookup", rag, []),
        ("lookup", "\n", [(1, "CTX011")]),
        ("recent_only", "\n", []),
        ("whole_document", rag, [(1, "CTX011")]),
    ):
        path.write_text(f"classes:\n  - {books}needs: {needs}}}{more}", encoding="utf-8")
        assert _rules(check("serve.sh", text=CHAT, workload=path)) == expected, needs


def test_without_a_workload_traffic_is_not_checked() -> None:
    skipped = {n.rule: n.reason for n in check("serve.sh", text=CHAT).not_checked}
    assert skipped["CTX011"] == "the traffic is not known; give --workload"


def test_on_the_command_line(traffic: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(CHAT, encoding="utf-8")
    words = ["check", str(script), "--workload", str(traffic), "--format", "json"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return run_cli(*words, *more)

    done = run()
    assert done.returncode == 1
    assert [f["rule"] for f in json.loads(done.stdout)["findings"]] == ["CTX011"]
    assert run("--class", "chat").returncode == 0
    assert run("--class", "mail").returncode == 2
