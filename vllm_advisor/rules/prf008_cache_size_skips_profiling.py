"""An explicit size of the KV cache, and nothing guards what is beside it.

## What it checks
`--kv-cache-memory-bytes` on a GPU that shares the host's memory, or where weights, overheads and
the cache together take more than 97 % of a GPU.

## Why it matters
With an explicit size vLLM ignores what its profile run measured and `--gpu-memory-utilization`. On
unified memory an overrun takes the host down with it; on others the server runs out of memory under
load.

## Bad
```bash
# gpu: gb10 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-memory-bytes 20G
```

## Good
```bash
# gpu: gb10 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.4
```

## Fix
Leave `--kv-cache-memory-bytes` out and give the share that it amounts to.

## References
- vllm:0.33.0:vllm/v1/worker/gpu_worker.py#determine_available_memory
- https://github.com/AEON-7/vllm-ultimate-dgx-spark/issues/9
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes

_FULL = 0.97
_UNIFIED = 0.85  # the most that recipes for GB10 take


@rule(
    id="PRF008",
    name="cache-size-skips-profiling",
    severity=Severity.WARNING,
    needs=("accelerator",),
    flags=("kv_cache_memory_bytes",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Add the size to what is beside it."""
    node, size = subject.node, subject.args.get("kv_cache_memory_bytes")
    if node is None or not isinstance(size, int):
        return
    gpu = node.accelerator
    budget = subject.figures.budget if subject.figures is not None else None
    spent = int(budget.requested.value) if budget is not None else None
    if not gpu.unified_memory and (spent is None or spent <= _FULL * gpu.memory_total):
        return
    flag = subject.spelling("kv_cache_memory_bytes")
    share = _UNIFIED if gpu.unified_memory else subject.engine.gpu_memory_utilization
    if spent is not None:
        share = min(share, math.ceil(100 * spent / gpu.memory_total) / 100)
    beside = f", of {format_bytes(spent)} with all that is beside it" if spent is not None else ""
    memory = f"the {format_bytes(gpu.memory_total)} that {gpu.name} "
    memory += "shares with the host" if gpu.unified_memory else "has"
    yield Fault(
        message=f"{flag} {format_bytes(size)}{beside}: vLLM does not hold it against {memory}",
        location=subject.place("kv_cache_memory_bytes"),
        fix=f"leave {flag} out: --gpu-memory-utilization {share:g} gives what is measured to be "
        "free of it",
        evidence=(
            ("kv_cache_memory_bytes", size),
            ("memory_total", gpu.memory_total),
        ),
    )
