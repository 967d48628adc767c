"""vllm-advisor route as a user meets it: a folder of a plan, a trace or a length, and the answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_cli import run_cli
from policies import CONTRACTS

from vllm_advisor import api
from vllm_advisor.errors import InputError

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "traces"
AZURE = str(DATA / "azure_llm_2023_conv_head.csv")
MOONCAKE = str(DATA / "mooncake_conversation_head.jsonl")
PLAN = ROOT / "tests" / "golden" / "contract-review" / "expected" / "plan.yaml"


def run(
    *words: str, stdin: bytes = b"", cwd: Path | None = None, columns: str = "100"
) -> tuple[int, str, str]:
    done = run_cli("route", *words, stdin=stdin, cwd=cwd, env={"COLUMNS": columns})
    return done.returncode, done.stdout, done.stderr


def reported(*words: str, **kwargs: Any) -> dict[str, Any]:
    code, out, err = run(*words, "--format", "json", **kwargs)
    assert (code, err) == (0, "")
    made: dict[str, Any] = json.loads(out)
    return made


@pytest.fixture
def deploy(tmp_path: Path) -> Path:
    policy = {"schema_version": "1", **CONTRACTS.to_dict()}
    (tmp_path / "routing.yaml").write_text(yaml.safe_dump(policy, sort_keys=False))
    return tmp_path


def write_plan(folder: Path, **changes: Any) -> Path:
    plan = yaml.safe_load(PLAN.read_text())
    plan["routing_policy"] = CONTRACTS.to_dict()
    plan["instances"][0]["replicas"] = 3
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**plan, **changes}, sort_keys=False))
    return path


def test_one_request(deploy: Path) -> None:
    code, out, err = run(str(deploy), "--prompt-tokens", "9000", "--needs", "lookup")
    assert (code, err) == (0, "")
    assert out.startswith("retrieve to rag on instance chat: passages may answer it")
    assert "header: x-workload: rag" in out
    assert "room for passages: 4,000 tokens" in out
    assert "stand-ins: long-docs" in out


def test_one_request_as_data(deploy: Path) -> None:
    """8K is 8,192 tokens, more than chat takes; 8k would be 8,000."""
    found = reported(str(deploy), "--prompt-tokens", "8K", "--max-tokens", "1k")
    assert found == {
        "schema_version": "1",
        "plan": "contract-review",
        "action": "send",
        "reason": found["reason"],
        "prompt_tokens": 8192,
        "route": "long-docs",
        "instance": "long-docs",
        "model": "long-docs",
        "max_prompt_tokens": 120_880,
        "retrieve_tokens": None,
        "retrieved": False,
        "stand_ins": [],
        "headers": {"x-workload": "long-docs"},
    }
    assert "not within the 6,168 that chat takes" in found["reason"]


@pytest.mark.parametrize(
    ("words", "action", "route"),
    [
        (("7000", "--history-tokens", "5k"), "bound_history", "chat"),
        (("9000", "--request-class", "clause-lookup"), "retrieve", "rag"),
        (("9000", "--needs", "lookup", "--retrieved-tokens", "3K"), "send", "rag"),
        (("100", "--route", "long-docs"), "send", "long-docs"),
        (("100", "--unavailable", "chat"), "send", "long-docs"),
    ],
)
def test_everything_that_decides(
    deploy: Path, words: tuple[str, ...], action: str, route: str
) -> None:
    found = reported("--prompt-tokens", *words, cwd=deploy)  # the plan of the current folder
    assert (found["action"], found["route"]) == (action, route)


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (("121K",), "refuse: 123,904 tokens are more than any instance reads"),
        (
            ("100", "--unavailable", "chat", "--unavailable", "long-docs"),
            "unavailable: 100 tokens are within the 6,168 that chat takes; but nobody answers",
        ),
    ],
)
def test_a_request_that_nobody_takes(deploy: Path, words: tuple[str, ...], starts: str) -> None:
    code, out, err = run(str(deploy), "--prompt-tokens", *words)
    assert (code, err) == (1, "")
    assert " ".join(out.split()).startswith(starts)
    code, out, _ = run(str(deploy), "--prompt-tokens", *words, "--format", "yaml")
    assert code == 1
    assert yaml.safe_load(out)["action"] == starts.partition(":")[0]


def test_a_trace_as_data(deploy: Path) -> None:
    (deploy / "trace.csv").write_text(
        "prompt_tokens,output_tokens,user,needs\n"
        "1000,100,ann,\n3000,100,bob,\n8000,200,ann,\n12000,300,bob,lookup\n130000,1,eve,\n"
    )
    found = reported(".", "--trace", "trace.csv", "--threshold", "8K", cwd=deploy)
    assert found["schema_version"] == "1"
    assert found["trace"] == {
        "file": "trace.csv",
        "columns": {
            "prompt_tokens": "prompt_tokens",
            "output_tokens": "output_tokens",
            "needs": "needs",
        },
        "ignored_columns": ["user"],
    }
    assert (found["requests"], found["prompt_tokens"], found["output_tokens"]) == (5, 154_000, 701)
    # By nearest rank of 1,000 3,000 8,000 12,000 130,000: p50 is the 3rd, p90 the 5th (4.5).
    assert found["prompt_lengths"] == {
        "p50": 8000,
        "p90": 130_000,
        "p95": 130_000,
        "p99": 130_000,
        "max": 130_000,
    }
    chat, rag, long = found["routes"]
    # Sent: 4,000 to chat, 300 + 5 x 800 = 4,300 to rag, 8,000 to long-docs: 16,300 in all.
    # chat costs (4,000 x $3 + 200 x $15) / 1,000,000 = $0.015.
    assert chat == {
        "route": "chat",
        "instance": "chat",
        "max_prompt_tokens": 6168,
        "max_model_len": 7168,
        "requests": 2,
        "requests_share": 0.4,
        "prompt_tokens": 4000,
        "prompt_tokens_share": pytest.approx(4000 / 16_300),
        "output_tokens": 200,
        "cut_answers": 0,
        "usd": pytest.approx(0.015),
        "usd_with_prefix_cache": None,
    }
    assert (rag["requests"], rag["prompt_tokens"], rag["output_tokens"]) == (1, 4300, 300)
    assert (long["requests"], long["prompt_tokens"], long["output_tokens"]) == (1, 8000, 200)
    assert found["refused"] == {
        "requests": 1,
        "requests_share": 0.2,
        "prompt_tokens": 130_000,
        "longest_prompt_tokens": 130_000,
    }
    assert found["retrieval"] == {"requests": 1, "tokens_not_sent": 7700}
    assert found["bounded_history"] == {"requests": 0, "tokens_not_sent": 0}
    # 16,300 x $3 + 700 x $15 per million; what is refused costs nothing.
    assert found["usd"] == pytest.approx(0.0594)
    assert found["prefix_cache"] is None
    moved = {each["max_prompt_tokens"]: each for each in found["what_if"]["thresholds"]}
    assert sorted(moved) == [6168, 8000, 8192, 12_000, 120_880]
    at_8192 = moved[8192]
    assert (at_8192["because"], at_8192["max_model_len"], at_8192["refused"]) == (
        ["given"],
        9216,
        1,
    )
    # chat's instance has its 12,000 and the 4,300 of rag; nothing is left for long-docs.
    assert at_8192["instances"] == [
        {
            "instance": "chat",
            "requests": 4,
            "requests_share": 0.8,
            "prompt_tokens": 16_300,
            "prompt_tokens_share": 1.0,
        },
        {
            "instance": "long-docs",
            "requests": 0,
            "requests_share": 0.0,
            "prompt_tokens": 0,
            "prompt_tokens_share": 0.0,
        },
    ]
    # p75 is the 4th: a prompt of 12,000, which no longer needs retrieval then.
    assert moved[12_000]["instances"][0]["prompt_tokens"] == 24_000
    assert any("by retrieval" in note for note in found["notes"])


@pytest.mark.parametrize("trace", [AZURE, MOONCAKE])
def test_shares_sum_to_one(deploy: Path, trace: str) -> None:
    found = reported(str(deploy), "--trace", trace)
    routes = found["routes"]
    shares = sum(r["requests_share"] for r in routes) + found["refused"]["requests_share"]
    assert shares == pytest.approx(1)
    assert sum(r["prompt_tokens_share"] for r in routes) == pytest.approx(1)
    for each in found["what_if"]["thresholds"]:
        share = sum(row["requests_share"] for row in each["instances"])
        assert share + each["refused"] / found["requests"] == pytest.approx(1)
        if "present" in each["because"]:
            sent = {row["instance"]: row["prompt_tokens"] for row in each["instances"]}
            assert sent["long-docs"] == routes[2]["prompt_tokens"]
            assert each["usd"] == pytest.approx(found["usd"])


def test_the_kv_cache_of_a_plan(tmp_path: Path) -> None:
    """chat has 465,232 tokens in each of 3 replicas; routing.yaml alone does not know them."""
    plan = write_plan(tmp_path)
    found = reported(str(plan), "--trace", MOONCAKE)
    cache = found["prefix_cache"]
    chat, long = cache["instances"]
    assert (chat["instance"], chat["kv_cache_tokens"]) == ("chat", 3 * 465_232)
    assert (long["instance"], long["kv_cache_tokens"]) == ("long-docs", 919_296)
    for row in (chat, long, cache["all_instances"]):
        assert 0 <= row["planned_hit_rate"] <= row["hit_rate"] <= 1
        assert row["hit_rate"] == pytest.approx(row["hit_tokens"] / row["prompt_tokens"])
    assert cache["all_instances"]["hit_rate"] <= cache["in_one_cache"]["hit_rate"]
    assert any("each has its own" in note for note in found["notes"])
    # $3 per million hits are not paid: cached tokens cost nothing here.
    saved = found["usd"] - found["usd_with_prefix_cache"]
    assert saved == pytest.approx(cache["all_instances"]["planned_hit_tokens"] * 3 / 1e6)
    policy = {"schema_version": "1", **CONTRACTS.to_dict()}
    (tmp_path / "routing.yaml").write_text(yaml.safe_dump(policy))
    both = reported(str(tmp_path), "--trace", MOONCAKE)
    assert both["prefix_cache"] == cache
    alone = reported(str(tmp_path / "routing.yaml"), "--trace", MOONCAKE)
    assert alone["prefix_cache"]["instances"][0]["kv_cache_tokens"] is None
    assert alone["prefix_cache"]["instances"][0]["planned_hit_rate"] is None
    assert any("name the plan.yaml" in note for note in alone["notes"])


def test_prices_on_the_command_line(deploy: Path) -> None:
    trace = b'{"prompt_tokens": 2000, "output_tokens": 100, "hash_ids": [1, 2]}\n' * 2
    found = reported(
        *(str(deploy), "--trace", "-", "--hash-block-tokens", "1000"),
        *("--input-usd-per-million-tokens", "10", "--output-usd-per-million-tokens", "20"),
        *("--cached-input-usd-per-million-tokens", "1"),
        stdin=trace,
    )
    # 4,000 x $10 + 200 x $20 = $44,000 per million; 1,999 tokens for $1 instead of $10.
    assert found["usd"] == pytest.approx(0.044)
    assert found["usd_with_prefix_cache"] == pytest.approx(0.044 - 1999 * 9 / 1e6)


def test_standard_input_with_gzip_and_names(deploy: Path) -> None:
    packed = gzip.compress(b"in,out\n100,5\n200,6\n")
    words = ("--prompt-column", "in", "--output-column", "out", "--request-class", "chat")
    found = reported(str(deploy), "--trace", "-", *words, stdin=packed)
    assert (found["requests"], found["prompt_tokens"], found["output_tokens"]) == (2, 300, 11)


def test_a_table_folds_and_loses_nothing(deploy: Path) -> None:
    code, out, err = run(str(deploy), "--trace", MOONCAKE, columns="70")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 70
    assert "…" not in out
    for word in ("Routes", "refused", "Prefix cache", "If chat took prompts up to", "Notes"):
        assert word in out
    code, out, _ = run(str(deploy), "--trace", AZURE)
    assert code == 0
    assert "contract-review: 200 requests of" in out
    assert "Prefix cache" not in out


def test_one_route_only(tmp_path: Path) -> None:
    policy = {"schema_version": "1", **CONTRACTS.to_dict(), "by_length": ["long-docs"]}
    (tmp_path / "routing.yaml").write_text(yaml.safe_dump(policy))
    code, out, _ = run(str(tmp_path), "--trace", AZURE)
    assert code == 0
    assert "there is no threshold to move" in out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "there is nothing to route"),
        (("--trace", "t.csv", "--prompt-tokens", "5"), "exclude each other"),
        (("--trace", "t.csv", "--route", "chat"), "--route goes with --prompt-tokens"),
        (("--trace", "t.csv", "--unavailable", "chat"), "--unavailable goes with"),
        (("--prompt-tokens", "5", "--threshold", "8K"), "--threshold goes with --trace"),
        (("--prompt-tokens", "5", "--hash-block-tokens", "8"), "--hash-block-tokens goes with"),
        (("--prompt-tokens", "many"), "'many' is no token count"),
        (("--prompt-tokens", "5", "--needs", "magic"), "'magic' is nothing an answer can need"),
        (("--prompt-tokens", "5", "--request-class", "x"), "the plan has no class 'x'"),
        (("--prompt-tokens", "5", "--route", "x"), "there is no route 'x'"),
        (("--prompt-tokens", "5", "--unavailable", "x"), "no route or instance 'x'"),
        (("--prompt-tokens", "5", "--max-tokens", "0"), "0 is no number of tokens"),
        (("--trace", "absent.csv"), "there is no such file"),
        (("--trace", AZURE, "--threshold", "1m"), "no threshold for chat"),
        (("--trace", AZURE, "--request-class", "x"), "the plan has no class 'x'"),
        (("--trace", AZURE, "--input-usd-per-million-tokens", "nan"), "nan is no price"),
        (("--trace", AZURE, "--output-usd-per-million-tokens", "-1"), "-1.0 is no price"),
        (("--trace", AZURE, "--prompt-column", "x"), "there is no column 'x'"),
    ],
)
def test_usage(deploy: Path, words: tuple[str, ...], what: str) -> None:
    code, out, err = run(str(deploy), *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert what in err
    assert "fix: " in err
    assert "Traceback" not in err


def test_a_bad_row_is_found(deploy: Path) -> None:
    code, out, err = run(str(deploy), "--trace", "-", stdin=b"prompt_tokens\n5\n3.7\n")
    assert (code, out) == (2, "")
    assert err.splitlines()[:2] == [
        "error: prompt_tokens is '3.7': a number of tokens is whole",
        "  --> -:3",
    ]


def test_help_opens_with_examples() -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert out.index("Examples:") < out.index("Options:")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"routing_policy": None}, "this plan has no routing_policy"),
        ({"routing_policy": None, "feasible": False}, "this plan is not feasible"),
        ({"routing_policy": {"plan": "x"}}, "routing_policy has no key 'retrieval'"),
        (
            {"routing_policy": {**CONTRACTS.to_dict(), "by_length": ["x"]}},
            "routing_policy cannot be read: by_length is 'x'",
        ),
        ({"instances": [{"name": "chat"}]}, "the figures of the instances cannot be read"),
    ],
)
def test_plans_without_a_policy(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    plan = write_plan(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        api.route_trace(plan, AZURE)
    assert what in caught.value.what
    assert caught.value.where == str(plan)


def test_folders_and_files_without_a_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither routing\.yaml nor plan\.yaml"):
        api.route(tmp_path, prompt_tokens=5)
    with pytest.raises(InputError, match="no such file"):
        api.route(tmp_path / "routing.yaml", prompt_tokens=5)
    (tmp_path / "routing.yaml").write_text("a: 1\n")
    with pytest.raises(InputError, match=r"no routing\.yaml"):
        api.route(tmp_path, prompt_tokens=5)


def test_routing_yaml_wins_over_the_plan_beside_it(tmp_path: Path) -> None:
    write_plan(tmp_path, routing_policy={"plan": "broken"})
    policy = {"schema_version": "1", **CONTRACTS.to_dict()}
    (tmp_path / "routing.yaml").write_text(yaml.safe_dump(policy))
    assert api.route(tmp_path, prompt_tokens=5).to_dict()["route"] == "chat"
