"""The pages of rules, as ``docs/rules.md`` and ``docs/rules/<ID>.md`` have them."""

from __future__ import annotations

from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules

_INDEX = """\
# Rules of `vllm-advisor check`

An `error` is something vLLM refuses to start with, reads as something else, or fails on later. A
`warning` starts and then serves less than the hardware could, or not what the workload asks for. An
`info` may be meant so. Rules about traffic need `--workload`: a workload file, or its `classes`
alone.

A rule whose facts are not known is reported as not checked, with the fact that is missing; it never
counts as passed. Confidence is `high` unless the figures behind a finding rest on assumptions, the
vLLM version is not recorded, or a word that only the shell knows may set more flags.

How to choose rules and to suppress findings: [check](check.md).

| id | name | severity | what is wrong |
|---|---|---|---|
{rows}"""
_PAGE = """\
# {rule.id}: {rule.name}

**{rule.severity}**. {body}

## Suppress
{suppress}

[All rules](../rules.md)
"""
_BY_COMMENT = """\
On the line before the finding, with your reason:

```bash
# vllm-advisor: ignore={rule.id} reason="why it may stay"
```

`--ignore {rule.id}` leaves the rule out everywhere; see [check](../check.md)."""
_BY_OPTION = "`--ignore {rule.id}` leaves the rule out; see [check](../check.md)."


def rules_markdown() -> str:
    """The table of all rules, each with a link to its page."""
    rows = []
    for rule in all_rules():
        summary = rule.summary.replace("|", r"\|")
        link = f"[{rule.id}](rules/{rule.id}.md)"
        rows.append(f"| {link} | {rule.name} | {rule.severity} | {summary} |\n")
    return _INDEX.format(rows="".join(rows))


def rule_markdown(rule: Rule) -> str:
    """The page of one rule."""
    suppress = _BY_OPTION if rule.scope == "suppression" else _BY_COMMENT
    return _PAGE.format(rule=rule, body=rule.page, suppress=suppress.format(rule=rule))
