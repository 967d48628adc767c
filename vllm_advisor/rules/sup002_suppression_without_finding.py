"""A comment that suppresses nothing.

## What it checks
Each rule that a `# vllm-advisor: ignore=...` comment names: whether there is such a rule, and
whether it found anything where the comment stands. Rules that were not selected or could not run
are not counted as idle. Comments that cannot be read are reported too, and `ignore-file=` below
the top of a file. Comments cannot suppress this rule; `--ignore SUP002` can.

## Why it matters
Either the fault is gone, and the comment would hide the next one; or the comment is misspelt or
misplaced, and the finding it was meant for still counts.

## Bad
```bash
# vllm-advisor: ignore=CTX001 reason="the image's config.json is stretched with YaRN"
vllm serve Qwen/Qwen3-8B --max-model-len 32768
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --max-model-len 32768
```

## Fix
Remove the comment or the name; or move it to the line of the finding, or the line before it.

## References
- https://docs.astral.sh/ruff/rules/unused-noqa/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, SuppressionUse, suppression_rule
from vllm_advisor.types.finding import Severity


@suppression_rule(id="SUP002", name="suppression-without-finding", severity=Severity.WARNING)
def check(use: SuppressionUse) -> Iterator[Fault]:
    """Report a comment that counts for nothing, else each name of it that does."""
    place = use.suppression.location
    if use.suppression.problem:
        yield Fault(
            message=f"this comment suppresses nothing: {use.suppression.problem}",
            location=place,
            fix="correct the comment, or remove it",
        )
        return
    for name, near in use.unknown:
        yield Fault(
            message=f"this comment suppresses nothing: {name} is no rule that a comment can name",
            location=place,
            fix=f"write {' or '.join(near)}, or remove it" if near else f"remove {name}",
            evidence=(("suppresses", name),),
        )
    for name in use.idle:
        yield Fault(
            message=f"this comment suppresses nothing: no finding of {name} here",
            location=place,
            fix=f"remove {name}, or move the comment to the finding it is meant for",
            evidence=(("suppresses", name),),
        )
