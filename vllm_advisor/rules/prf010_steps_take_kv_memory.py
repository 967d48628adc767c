"""--max-num-batched-tokens takes memory that the KV cache lacks.

## What it checks
An explicit `--max-num-batched-tokens` above 2,048 against 2,048: the activations of the profile
run, and what windowed layers keep for steps in flight. Reported where the difference is half of
the KV cache or more, and the cache holds fewer than two requests of `--max-model-len`.

## Why it matters
vLLM runs a step of that many tokens at start-up and sets its peak aside. Larger steps read prompts
a little faster; a cache that holds few requests makes them queue.

## Bad
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 12288 --max-num-seqs 16 --max-num-batched-tokens 16384
```

## Good
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 8 --max-num-batched-tokens 2048
```

## Fix
A smaller `--max-num-batched-tokens`.

## References
- vllm:0.33.0:vllm/v1/worker/gpu/model_runner.py#profile_run
- https://docs.vllm.ai/en/latest/configuration/conserving_memory
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes, format_tokens

_SMALLER = 2048
_GAIN = 1.5
_FEW = 2


@rule(
    id="PRF010",
    name="steps-take-kv-memory",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures"),
    flags=("max_num_batched_tokens",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with smaller steps."""
    case = instance_case(subject)
    if case is None or not case.figures.starts or not case.figures.capacity.groups:
        return
    settings, before = case.settings, case.figures.capacity
    if subject.args.get("max_num_batched_tokens") is None:
        return
    least = max(_SMALLER, settings.max_num_seqs)
    if settings.max_num_batched_tokens <= least or before.max_concurrency >= _FEW:
        return
    smaller = case.sized(replace(settings, max_num_batched_tokens=least))
    if smaller is None or smaller.capacity.max_concurrency < _GAIN * before.max_concurrency:
        return
    after = smaller.capacity
    gained = after.available_bytes - before.available_bytes
    yield Fault(
        message=f"steps of {format_tokens(settings.max_num_batched_tokens)} tokens take "
        f"{format_bytes(gained)} more at start-up than {format_tokens(least)}, and the KV cache "
        f"has {format_bytes(before.available_bytes)}",
        location=subject.place("max_num_batched_tokens"),
        fix=f"--max-num-batched-tokens {least}: {format_tokens(after.tokens)} instead of "
        f"{format_tokens(before.tokens)} tokens of KV cache",
        evidence=(
            ("max_num_batched_tokens", settings.max_num_batched_tokens),
            ("gained_bytes", gained),
            ("kv_cache_tokens", before.tokens),
            ("kv_cache_tokens_after", after.tokens),
        ),
    )
