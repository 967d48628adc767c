"""Memory of the GPU is left unused while the KV cache is small.

## What it checks
An explicit `--gpu-memory-utilization` between 0.5 and 0.85 on a GPU of its own, where the version's
default would enlarge the KV cache by a fifth or more and the cache holds fewer than four requests
of `--max-model-len`. Below 0.5 the GPU is taken to be shared on purpose. GPUs that share the host's
memory are left alone.

## Why it matters
What vLLM does not ask for, nobody uses: requests queue beside free memory.

## Bad
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --gpu-memory-utilization 0.7
```

## Good
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --gpu-memory-utilization 0.9
```

## Fix
Leave `--gpu-memory-utilization` out, unless something else needs the memory.

## References
- vllm:0.33.0:vllm/config/cache.py#gpu_memory_utilization
- https://github.com/vllm-project/vllm/issues/13508
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes, format_tokens

_SHARED, _LOW = 0.5, 0.85
_GAIN = 1.2
_FEW = 4


@rule(
    id="PRF007",
    name="utilization-low",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures"),
    flags=("gpu_memory_utilization",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with the default."""
    case, node = instance_case(subject), subject.node
    share = subject.args.get("gpu_memory_utilization")
    if case is None or node is None or not isinstance(share, float) or not case.figures.starts:
        return
    gpu = node.accelerator
    if not _SHARED <= share < _LOW or gpu.unified_memory or node.memory_used:
        return
    if case.settings.kv_cache_memory_bytes is not None:
        return
    usual = subject.engine.gpu_memory_utilization
    larger = case.sized(replace(case.settings, gpu_memory_utilization=usual))
    before = case.figures.capacity
    if larger is None or not before.groups or before.max_concurrency >= _FEW:
        return
    after = larger.capacity
    if after.max_concurrency < _GAIN * before.max_concurrency:
        return
    unused = round(gpu.memory_total * (usual - share))
    yield Fault(
        message=f"{subject.spelling('gpu_memory_utilization')} {share:g} leaves "
        f"{format_bytes(unused)} per GPU unused, and the KV cache holds "
        f"{before.max_concurrency:.2f} requests of {format_tokens(before.max_model_len)} tokens",
        location=subject.place("gpu_memory_utilization"),
        fix=f"{subject.spelling('gpu_memory_utilization')} {usual:g}: "
        f"{format_tokens(after.tokens)} instead of {format_tokens(before.tokens)} tokens, "
        f"{after.max_concurrency:.2f} requests",
        evidence=(
            ("gpu_memory_utilization", share),
            ("unused_bytes", unused),
            ("kv_cache_tokens", before.tokens),
            ("kv_cache_tokens_at_default", after.tokens),
        ),
    )
