"""Prefix caching is switched off.

## What it checks
`--no-enable-prefix-caching`. Not reported for models that only embed or score, where nothing in the
workload repeats, where the model's recipe says so, beside `--mm-processor-cache-gb 0`, which says
that no input comes twice, on a decode instance, and where production-stack's chart switches it off
on its own (HLM001).

## Why it matters
It is on by default and costs next to nothing where nothing repeats. Without it, the system prompt,
the tools and the whole history of a conversation are computed again for every request.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching
```

## Good
```bash
vllm serve Qwen/Qwen3-8B
```

## Fix
Leave the flag out.

## References
- https://docs.vllm.ai/en/latest/features/automatic_prefix_caching
- https://github.com/ubicloud/ubicloud/pull/2670
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.recipes import recipe_sets
from vllm_advisor.rules.stack_values import prefix_caching_left_out
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.runner import Runner
from vllm_advisor.types.workload import RequestClass
from vllm_advisor.units import format_tokens


@rule(
    id="PRF012",
    name="prefix-caching-off",
    severity=Severity.WARNING,
    flags=("enable_prefix_caching",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the switch, and for a reason to use it."""
    args, model = subject.args, subject.model
    if args.get("enable_prefix_caching") is not False or args.get("kv_transfer_config") is not None:
        return
    if args.get("mm_processor_cache_gb") == 0 or prefix_caching_left_out(subject) is not None:
        return
    classes = subject.classes
    repeating = [c for c in classes or () if _repeats(c)]
    if classes is not None and not repeating:
        return
    if model is None and not repeating:
        raise UnknownFactError(subject.why_missing("model") or "")
    if model is not None and model.runner is Runner.POOLING:
        return
    if model is not None and recipe_sets(model, "enable_prefix_caching", value=False):
        return
    what, evidence = "prompts that begin alike are computed again for every request", 0
    if repeating:
        again = max(repeating, key=_reused)
        evidence = _reused(again)
        what = f"class {again.name} computes {format_tokens(evidence)} tokens again per request"
    yield Fault(
        message=f"prefix caching is off: {what}",
        location=subject.place("enable_prefix_caching"),
        fix="leave the flag out: prefix caching is on by default",
        evidence=(("reused_tokens_per_request", evidence),) if repeating else (),
    )


def _repeats(request: RequestClass) -> bool:
    return request.shared_prefix_tokens > 0 or request.requests_per_document > 1


def _reused(request: RequestClass) -> int:
    """Tokens of a median prompt that an earlier request has computed already."""
    again = 1 - 1 / request.requests_per_document
    return max(request.shared_prefix_tokens, round(request.prompt_tokens.p50 * again))
