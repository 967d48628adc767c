"""The engine: which rules run, what is not checked and why, and how far a finding is trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from checked_subject import subject_of, subjects

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import parse_shell_script
from vllm_advisor.rules.protocol import Fault, Rule, Subject, rule
from vllm_advisor.rules.registry import all_rules, collect, find_rule, run_rules
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Finding, NotChecked, Severity
from vllm_advisor.types.source import Confidence

LLAMA = "vllm serve meta-llama/Llama-3.1-8B-Instruct"


def _subject(command: str, gpu: str = "") -> Subject:
    (subject,) = subjects(f"# gpu: {gpu}\n{command}" if gpu else command)
    return subject


def _findings(command: str, gpu: str = "") -> tuple[Finding, ...]:
    return run_rules(_subject(command, gpu))[0]


def _skipped(subject: Subject) -> dict[str, str]:
    return {s.rule: s.reason for s in run_rules(subject)[1]}


def _rule(id_: str, name: str) -> Rule:
    @rule(id=id_, name=name, severity=Severity.INFO)
    def check(subject: Subject) -> Iterator[Fault]:
        yield Fault(message="m", location=subject.command.location, fix="f")

    return check


def test_ids_are_a_family_and_three_digits() -> None:
    assert all(re.fullmatch(r"[A-Z][A-Z0-9]+\d{3}", r.id) for r in all_rules())
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", r.name) for r in all_rules())


def test_collect_orders_by_id() -> None:
    rules = collect([("zz002_b", _rule("ZZ002", "b")), ("zz001_a", _rule("ZZ001", "a"))])
    assert [r.id for r in rules] == ["ZZ001", "ZZ002"]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([("zz001_a", ("ZZ001", "a")), ("zz001_a", ("ZZ001", "a"))], "two rules"),
        ([("zz001_a", ("ZZ001", "a")), ("zz002_a", ("ZZ002", "a"))], "two rules"),
        ([("zz001_other", ("ZZ001", "a"))], "not in zz001_a"),
    ],
)
def test_collect_refuses_duplicates_and_wrong_file_names(found, says) -> None:
    with pytest.raises(ValueError, match=says):
        collect((module, _rule(*names)) for module, names in found)


def test_a_fault_needs_a_fix() -> None:
    with pytest.raises(ValueError, match="without a fix"):
        Fault(message="m", location=Location(file="f", line=1), fix="")


def test_a_fault_may_be_milder_than_its_rule() -> None:
    (finding,) = run_rules(
        _subject("docker run --gpus 2 --shm-size 256m vllm/vllm-openai:v0.33.0 --model org/m -tp 2")
    )[0]
    assert find_rule("K8S001").severity is Severity.ERROR
    assert (finding.rule, finding.severity) == ("K8S001", Severity.WARNING)


def test_select_takes_ids_and_names() -> None:
    subject = _subject(f"{LLAMA} --swap-space 4 --max-model-len 200000 --tensor-parallel-size 3")
    assert [f.rule for f in run_rules(subject)[0]] == ["FLG001", "CTX001", "PAR001"]
    findings, skipped = run_rules(subject, {"PAR001", "unknown-flag"})
    assert [f.rule for f in findings] == ["FLG001", "PAR001"]
    assert skipped == ()


def test_unknown_select_is_an_input_error() -> None:
    with pytest.raises(InputError, match="KV999"):
        run_rules(_subject(LLAMA), ["KV999", "KV001"])
    with pytest.raises(InputError, match="no rule is called x"):
        find_rule("x")
    assert find_rule("context-exceeds-kv-cache").id == "KV001"


def test_findings_come_in_the_order_of_their_places() -> None:
    script = f"{LLAMA} \\\n  --tensor-parallel-size 3 --swap-space 4 \\\n  --max-model-len 200000"
    places = [(f.location.line, f.rule) for f in _findings(script)]
    assert places == [(2, "PAR001"), (2, "FLG001"), (3, "CTX001")]


def test_a_finding_carries_its_rule() -> None:
    (finding,) = _findings(f"{LLAMA} --max-model-len 200000")
    assert finding == Finding(
        rule="CTX001",
        name="max-model-len-above-model-limit",
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        message="--max-model-len 200,000 is above the 131,072 tokens vLLM derives for "
        "meta-llama/Llama-3.1-8B-Instruct",
        location=Location(file="serve.sh", line=1, column=len(f"{LLAMA} --max-model-len ") + 1),
        fix="--max-model-len 131072",
        evidence=(("max_model_len", 200000), ("derived_max_model_len", 131072)),
    )


def test_what_is_missing_is_said() -> None:
    skipped = _skipped(_subject("vllm serve org/not-known -tp 3"))
    assert skipped["PAR001"] == "the facts of org/not-known are not known"
    assert skipped["PAR002"] == "the GPU is not known"
    assert skipped["KV001"] == "the facts of org/not-known are not known"
    assert not {"FLG001", "FLG002", "FLG003"} & set(skipped)


def test_a_given_reason_wins() -> None:
    subject = replace(
        _subject("vllm serve org/not-known"), missing={"model": "the Hub does not answer"}
    )
    assert _skipped(subject)["CTX001"] == "the Hub does not answer"


def test_what_sizing_refused_is_why_figures_are_missing() -> None:
    subject = _subject(f"{LLAMA} --tensor-parallel-size 3", "h100-sxm x 4")
    reason = "Total number of attention heads (32) must be divisible by tensor parallel size (3)."
    assert run_rules(subject, ["KV001"]) == ((), (NotChecked(rule="KV001", reason=reason),))


@pytest.mark.parametrize(
    ("flags", "rule_id", "reason"),
    [
        ("--max-model-len $LEN", "CTX001", "--max-model-len is $LEN, which only the shell knows"),
        ("-tp $GPUS", "PAR001", "--tensor-parallel-size is $GPUS, which only the shell knows"),
        ("-tp $GPUS", "KV001", "--tensor-parallel-size is $GPUS, which only the shell knows"),
        ("--max-model-len 8k5", "KV001", "--max-model-len has a value that vLLM does not read"),
    ],
)
def test_a_value_that_cannot_be_read_is_not_judged(flags, rule_id, reason) -> None:
    assert _skipped(_subject(f"{LLAMA} {flags}", "h100-sxm x 2"))[rule_id] == reason


def test_a_model_only_the_shell_knows() -> None:
    skipped = _skipped(_subject('vllm serve "$MODEL" --max-model-len 131072'))
    assert skipped["CTX001"] == "the model is $MODEL, which only the shell knows"


def test_other_flags_are_judged_beside_an_unread_one() -> None:
    assert [f.rule for f in _findings(f"{LLAMA} --port $PORT -tp 3")] == ["PAR001"]


def _confidence(command: str, gpu: str = "", version: str | None = None) -> Confidence:
    engine = load_engine(version)
    (parsed,) = parse_shell_script(command, "serve.sh", engine)
    node = _subject(LLAMA, gpu).node if gpu else None
    (finding,) = run_rules(subject_of(parsed, engine, node))[0]
    return finding.confidence


def test_confidence_is_computed() -> None:
    # Flags and the model's config are facts; the memory beside the weights is fitted to logs
    assert _confidence(f"{LLAMA} -tp 3") is Confidence.HIGH
    # (no log of vLLM 0.33 is public).
    assert _confidence(LLAMA, "rtx-4090") is Confidence.LOW
    # A newer version than the newest recorded: its flags are taken for those of the newest.
    assert _confidence(f"{LLAMA} --swap-space 4", version="0.99.0") is Confidence.MEDIUM
    # More flags may follow, and the last one of a kind counts.
    assert _confidence(f"{LLAMA} -tp 3 $MORE") is Confidence.LOW
    assert _confidence(f"{LLAMA} -tp 3 --config more.yaml") is Confidence.LOW
    # ... which makes an unknown flag no better known.
    assert _confidence(f"{LLAMA} --swap-space 4 $MORE") is Confidence.HIGH
