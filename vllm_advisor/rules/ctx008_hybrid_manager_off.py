"""Windowed layers pay for the full length, because the hybrid KV cache manager is off.

## What it checks
`--disable-hybrid-kv-cache-manager`, or a KV connector that switches the manager off, with a model
some of whose layers have a sliding window: the KV cache with and without it. Reported where the
manager gives a quarter more.

## Why it matters
Without it vLLM keeps the whole request for every layer, also for those that look at 128 or 1,024
tokens. gpt-oss, Gemma and Llama 4 are sized with it everywhere.

## Bad
```bash
# gpu: h100-sxm x 1
vllm serve openai/gpt-oss-120b --max-model-len 32768 --max-num-seqs 64 \
  --disable-hybrid-kv-cache-manager
```

## Good
```bash
# gpu: h100-sxm x 1
vllm serve openai/gpt-oss-120b --max-model-len 32768 --max-num-seqs 64
```

## Fix
Leave the flag out, or take a connector that supports several groups of layers.

## References
- vllm:0.33.0:vllm/config/scheduler.py#disable_hybrid_kv_cache_manager
- https://docs.vllm.ai/en/latest/design/hybrid_kv_cache_manager
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.kv_cache import WINDOWED
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens

_GAIN = 1.25


@rule(
    id="CTX008",
    name="hybrid-manager-off",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures"),
    flags=("disable_hybrid_kv_cache_manager", "kv_transfer_config"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with the manager."""
    case = instance_case(subject)
    if case is None or case.settings.hybrid_manager or not case.settings.sliding_window:
        return
    specs = case.model.cache_specs
    windowed = sum(spec.kind in WINDOWED for spec in specs)
    grouped = case.sized(replace(case.settings, hybrid_manager=True))
    before = case.figures.capacity
    if not 0 < windowed < len(specs) or grouped is None:
        return
    after = grouped.capacity
    if after.max_concurrency < _GAIN * before.max_concurrency:
        return
    flag = subject.spelling("disable_hybrid_kv_cache_manager")
    by_flag = subject.args.get("disable_hybrid_kv_cache_manager")
    way = f"leave {flag} out" if by_flag else "a KV connector that supports groups of layers"
    yield Fault(
        message=f"without the hybrid KV cache manager {windowed} of {len(specs)} layers keep the "
        "whole request instead of their window",
        location=subject.place("disable_hybrid_kv_cache_manager", "kv_transfer_config"),
        fix=f"{way}: {after.max_concurrency:.2f} instead of {before.max_concurrency:.2f} requests "
        f"of {format_tokens(before.max_model_len)} tokens",
        evidence=(
            ("windowed_layers", windowed),
            ("layers", len(specs)),
            ("max_concurrency", round(before.max_concurrency, 2)),
            ("max_concurrency_with_manager", round(after.max_concurrency, 2)),
        ),
    )
