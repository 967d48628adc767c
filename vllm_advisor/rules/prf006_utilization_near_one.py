"""Next to nothing of the GPU is left for what vLLM does not count.

## What it checks
`--gpu-memory-utilization` of 0.97 or more: what is left of the GPU after vLLM's share and after
what the driver, the CUDA context and NCCL hold before it starts. Reported where that is less than
the fitted overheads may miss and CUDA graphs are captured; not with `--enforce-eager`, nor on GPUs
where 3 % are enough.

## Why it matters
The profile run does not see all: fragments, workspaces that grow, graphs that are larger than
estimated. Without room, the server runs out of memory while it starts or under load, and a version
that worked is followed by one that does not.

## Bad
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.98
```

## Good
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.95
```

## Fix
Lower `--gpu-memory-utilization`; the KV cache loses little.

## References
- vllm:0.33.0:vllm/v1/worker/gpu_worker.py#determine_available_memory
- https://github.com/vllm-project/vllm/issues/33155
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, format_bytes

_NEAR = 0.97
_ENOUGH = 2 * GIB  # growth after profiling that start-up logs show is below


@rule(
    id="PRF006",
    name="utilization-near-one",
    severity=Severity.WARNING,
    needs=("accelerator", "settings", "figures"),
    flags=("gpu_memory_utilization",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Add up what is left."""
    before, settings, figures = subject.before_start_bytes, subject.settings, subject.figures
    if before is None or settings is None or figures is None or figures.budget is None:
        return
    share = settings.gpu_memory_utilization
    if share < _NEAR or settings.enforce_eager or settings.kv_cache_memory_bytes is not None:
        return
    total, requested = int(figures.budget.total.value), int(figures.budget.requested.value)
    left = total - requested - before
    if left >= _ENOUGH:
        return
    lower = int(100 * (total - before - _ENOUGH) / total) / 100
    fewer = requested - int(total * lower)
    yield Fault(
        message=f"{subject.spelling('gpu_memory_utilization')} {share:g} leaves "
        f"{format_bytes(max(0, left))} of {format_bytes(total)} beside the "
        f"{format_bytes(before)} held before vLLM starts",
        location=subject.place("gpu_memory_utilization"),
        fix=f"{subject.spelling('gpu_memory_utilization')} {lower:g}: the KV cache is "
        f"{format_bytes(fewer)} smaller",
        evidence=(
            ("gpu_memory_utilization", share),
            ("left_bytes", left),
            ("before_start_bytes", before),
        ),
    )
