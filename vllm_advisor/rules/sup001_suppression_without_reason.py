"""A finding is suppressed, and the comment does not say why.

## What it checks
Every `# vllm-advisor: ignore=...` and `ignore-file=...` comment of the files under check for a
`reason="..."` that is not empty. Comments cannot suppress this rule; `--ignore SUP001` can.

## Why it matters
The finding is kept back all the same. Who reads the file later cannot tell a decision from a
leftover, and dares to remove neither.

## Bad
```bash
# vllm-advisor: ignore=CTX001
vllm serve Qwen/Qwen3-8B --max-model-len 131072
```

## Good
```bash
# vllm-advisor: ignore=CTX001 reason="the image's config.json is stretched with YaRN"
vllm serve Qwen/Qwen3-8B --max-model-len 131072
```

## Fix
Add `reason="..."` with what a later reader has to know, or remove the comment.

## References
- https://docs.astral.sh/ruff/linter/#error-suppression
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, SuppressionUse, suppression_rule
from vllm_advisor.types.finding import Severity


@suppression_rule(id="SUP001", name="suppression-without-reason", severity=Severity.WARNING)
def check(use: SuppressionUse) -> Iterator[Fault]:
    """Report a comment that can be read and has no reason."""
    suppression = use.suppression
    if suppression.names and not suppression.reason:
        names = ",".join(suppression.names)
        yield Fault(
            message=f"{names} is suppressed without a reason",
            location=suppression.location,
            fix='add reason="why it may stay" to the comment, or remove it',
            evidence=(("suppresses", names),),
        )
