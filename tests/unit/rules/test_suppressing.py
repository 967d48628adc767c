"""Which findings a comment keeps back, and what is said of the comment."""

from __future__ import annotations

import pytest
from checked_subject import judge

from vllm_advisor.errors import InputError
from vllm_advisor.rules.registry import all_rules
from vllm_advisor.rules.selection import near_names, rules_named, select_rules

LONG = "vllm serve Qwen/Qwen3-8B --max-model-len 131072"


def judged(script: str) -> tuple[list[str], list[str]]:
    """Rules whose findings count, and rules whose findings are kept back."""
    stay, back, _ = judge(script)
    return [f.rule for f in stay], [s.finding.rule for s in back]


@pytest.mark.parametrize(
    "name", ["CTX001", "ctx001", "max-model-len-above-model-limit", "CTX", "FLG,CTX"]
)
def test_ids_names_and_families_are_understood(name: str) -> None:
    script = f'# vllm-advisor: ignore-file={name} reason="x"\n{LONG} --swap-space 4\n'
    stay, back = judged(script)
    assert "CTX001" in back
    assert ("FLG001" in back) is ("FLG" in name)
    assert ("FLG001" in stay) is ("FLG" not in name)


def test_a_finding_kept_back_names_its_comment() -> None:
    _, (held,), _ = judge(f'\n{LONG}  # vllm-advisor: ignore=CTX001 reason="stretched"\n')
    assert held.finding.rule == "CTX001"
    assert held.suppression.reason == "stretched"
    assert held.suppression.location.line == held.finding.location.line == 2


def test_another_command_is_not_meant() -> None:
    script = f'# vllm-advisor: ignore=CTX001 reason="x"\n{LONG}\n{LONG}\n'
    assert judged(script) == (["CTX001"], ["CTX001"])


def test_a_second_comment_for_the_same_finding_is_not_idle() -> None:
    comment = '# vllm-advisor: ignore{}=CTX001 reason="x"\n'
    script = comment.format("-file") + comment.format("") + LONG
    assert judged(script) == ([], ["CTX001"])


def test_what_could_not_be_checked_is_not_idle() -> None:
    # KV001 needs a GPU, which nobody names; FLG001 was checked and found nothing.
    script = f'# vllm-advisor: ignore=KV001,FLG001,CTX001 reason="x"\n{LONG}\n'
    stay, back, _ = judge(script)
    assert [(f.rule, dict(f.evidence)["suppresses"]) for f in stay] == [("SUP002", "FLG001")]
    assert len(back) == 1


def test_a_family_is_idle_only_if_all_of_it_was_checked() -> None:
    assert judged(f'# vllm-advisor: ignore=KV reason="x"\n{LONG} --max-model-len 8192\n') == (
        [],
        [],
    )


def test_unknown_names_are_told_with_near_ones() -> None:
    (finding,), _, _ = judge('# vllm-advisor: ignore=CTX099 reason="x"\nvllm serve Qwen/Qwen3-8B\n')
    assert finding.rule == "SUP002"
    assert "CTX099 is no rule" in finding.message
    assert finding.fix.startswith("write CTX0")


def test_names_mean_rules() -> None:
    assert rules_named("KV001") == {"KV001"}
    assert rules_named("unknown-flag") == {"FLG001"}
    assert rules_named("FLG") == {r.id for r in all_rules() if r.id.startswith("FLG")} != set()
    assert rules_named("K") == rules_named("") == rules_named("KV00") == frozenset()


def test_words_that_mean_no_rule_are_refused_with_near_ones() -> None:
    with pytest.raises(InputError) as refused:
        select_rules([("KV001", "--select"), ("unknown-flags", "--select")])
    assert refused.value.what == "no rule or family of rules is called 'unknown-flags'"
    assert refused.value.where == "--select"
    assert refused.value.fix.startswith("did you mean unknown-flag")


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_slip_of_the_keys_is_understood(rule) -> None:
    assert rule.id in near_names(rule.id.lower() + "1")
    assert rule.name in near_names(rule.name[1:])
