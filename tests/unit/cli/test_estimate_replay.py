"""vllm-advisor estimate --trace and --simulate as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked_cli import run_cli

DATA = Path(__file__).parents[2] / "data" / "traces"
AZURE = str(DATA / "azure_llm_2023_conv_head.csv")
MOONCAKE = DATA / "mooncake_conversation_head.jsonl"
ENGINE = ("estimate", "qwen3-32b", "--gpu", "h100-sxm", "--gpu-count", "2")
LENGTHS = ("--input-tokens", "1000", "--output-tokens", "300")


def reported(*words: str, stdin: str | bytes = "") -> dict[str, Any]:
    done = run_cli(*ENGINE, *words, "--format", "json", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_a_trace_says_lengths_and_load() -> None:
    report = reported("--trace", AZURE)
    replay = report["replay"]
    # 200 requests within 61.587 s of each other
    assert report["load"]["request_rate"] == pytest.approx(
        199 / replay["trace"]["seconds"], rel=1e-4
    )
    assert report["load"]["input_tokens"] == round(replay["prompt_tokens"] / 200, 1)
    assert report["load"]["output_tokens"] == round(replay["output_tokens"] / 200, 1)
    assert replay["requests"] == 200
    assert replay["of"] == "trace"
    assert replay["trace"]["columns"]["arrival"] == "TIMESTAMP"
    for times in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        found = replay[times]
        assert 0 < found["p50"] <= found["p90"] <= found["p95"] <= found["p99"]
    assert not replay["unstable"]


def test_a_speedup_scales_the_rate_and_replicas_share_it() -> None:
    plain, fast = reported("--trace", AZURE), reported("--trace", AZURE, "--speedup", "4")
    shared = reported("--trace", AZURE, "--speedup", "4", "--replicas", "4")
    rates = [report["load"]["request_rate"] for report in (plain, fast, shared)]
    assert rates[1:] == [pytest.approx(4 * rates[0])] * 2
    assert fast["replay"]["trace"]["seconds"] == plain["replay"]["trace"]["seconds"]
    means = [report["replay"]["tpot_ms"]["mean"] for report in (plain, fast, shared)]
    assert means[1] > 1.3 * means[0]
    assert means[2] < 1.1 * means[0]
    assert shared["load"]["replicas"] == 4


def test_standard_input_and_prompts_that_are_too_long() -> None:
    report = reported("--trace", "-", "--max-model-len", "8192", stdin=MOONCAKE.read_bytes())
    rows = [json.loads(line) for line in MOONCAKE.read_text("utf-8").splitlines()]
    taken = [row for row in rows if row["input_length"] < 8192]
    cut = [row for row in taken if row["input_length"] + row["output_length"] > 8192]
    replay = report["replay"]
    assert replay["requests"] == len(taken)
    assert replay["trace"]["refused"] == len(rows) - len(taken)
    assert replay["trace"]["cut"] == len(cut)
    assert replay["output_tokens"] == sum(
        min(row["output_length"], 8192 - row["input_length"]) for row in taken
    )


def test_requests_that_failed_are_left_out() -> None:
    trace = "timestamp,prompt_tokens,output_tokens\n5,100,0\n6,100,20\n6,100,20\n"
    report = reported("--trace", "-", stdin=trace)
    assert report["replay"]["trace"]["without_tokens"] == 1
    assert report["load"] == {"input_tokens": 100.0, "output_tokens": 20.0, "concurrency": 2}


def test_a_table_of_a_trace() -> None:
    done = run_cli(*ENGINE, "--trace", AZURE, "--speedup", "2")
    assert (done.returncode, done.stderr) == (0, "")
    below = done.stdout[done.stdout.index("200 requests replayed, as the trace has them") :]
    assert "arrival is TIMESTAMP" in below
    for said in ("estimate", "p95", "TTFT", "between two tokens", "requests/s", "preemption"):
        assert said in below


def test_a_table_of_a_load_that_is_not_served() -> None:
    done = run_cli(*ENGINE, *LENGTHS, "--request-rate", "20", "--simulate")
    assert done.returncode == 0
    assert "More requests arrive than are served: the queue grew to the end" in done.stdout


def test_a_simulated_load_is_the_same_each_time() -> None:
    words = (*LENGTHS, "--request-rate", "4", "--simulate", "--requests", "500")
    first = reported(*words)
    assert first == reported(*words)
    assert first["replay"]["requests"] == 500
    assert first["replay"]["steady_requests_per_second"] == pytest.approx(4, rel=0.1)
    assert first["replay"]["tpot_ms"]["mean"] == pytest.approx(first["tpot_ms"]["point"], rel=0.15)


def test_a_closed_loop_is_simulated_too() -> None:
    replay = reported(*LENGTHS, "--concurrency", "16", "--simulate")["replay"]
    assert (replay["of"], replay["requests"], replay["running"]["max"]) == ("closed", 2000, 16)


def test_nothing_is_replayed_unless_asked_for() -> None:
    assert "replay" not in reported(*LENGTHS)


@pytest.mark.parametrize(
    ("words", "what", "where"),
    [
        ((), "--input-tokens is not given, and no trace either", "--input-tokens"),
        (("--input-tokens", "5"), "--output-tokens is not given", "--output-tokens"),
        (
            ("--trace", AZURE, "--input-tokens", "5"),
            "--input-tokens and --trace exclude",
            "--input-tokens",
        ),
        (
            ("--trace", AZURE, "--request-rate", "5"),
            "--request-rate and --trace exclude",
            "--request-rate",
        ),
        (("--trace", AZURE, "--simulate"), "--simulate and --trace exclude", "--simulate"),
        ((*LENGTHS, "--speedup", "2"), "--speedup goes with --trace", "--speedup"),
        ((*LENGTHS, "--requests", "20"), "--requests goes with --simulate", "--requests"),
        (("--trace", AZURE, "--speedup", "0"), "speedup is 0.0", "speedup"),
        (("--trace", AZURE, "--speedup", "nan"), "speedup is nan", "speedup"),
        (
            ("--trace", AZURE, "--prefix-hit-rate", "1"),
            "prefix_hit_rate has no meaning",
            "prefix_hit_rate",
        ),
        (("--trace", "/nowhere.csv"), "there is no such file", "/nowhere.csv"),
    ],
)
def test_options_that_mean_nothing(words: tuple[str, ...], what: str, where: str) -> None:
    done = run_cli(*ENGINE, *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {what}")
    assert f"--> {where}\n" in done.stderr
    assert "fix: " in done.stderr


def test_a_trace_of_which_nothing_would_be_served() -> None:
    trace = "timestamp,prompt_tokens,output_tokens\n5,9000,10\n"
    done = run_cli(*ENGINE, "--trace", "-", "--max-model-len", "8192", stdin=trace)
    assert done.returncode == 1
    assert done.stderr.startswith("error: every prompt is longer than max_model_len 8,192 allows")


def test_a_trace_without_answers() -> None:
    trace = "timestamp,prompt_tokens,output_tokens\n5,9000,0\n"
    done = run_cli(*ENGINE, "--trace", "-", stdin=trace)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no request of it has a prompt and an answer")
