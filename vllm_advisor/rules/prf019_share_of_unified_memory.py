"""vLLM takes so much of a memory that the host shares that little is left for the host.

## What it checks
`--gpu-memory-utilization`, or its default, on a GPU that shares the host's memory, such as GB10:
reported where less than 8 GiB are left for everything else.

## Why it matters
On such a machine the share is of all memory there is. The operating system, the engine's own
processes, page cache while weights load and everything else live in the rest; without it the host
swaps, freezes or kills the server.

## Bad
```bash
# gpu: gb10 x 1
vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95
```

## Good
```bash
# gpu: gb10 x 1
vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.8
```

## Fix
Lower `--gpu-memory-utilization`; recipes for GB10 use 0.7 to 0.85.

## References
- vllm:0.33.0:vllm/utils/mem_utils.py#MemorySnapshot
- https://github.com/blazux/qwen3.8-Flash-DGX/issues/9
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, format_bytes

_HOST = 8 * GIB


@rule(
    id="PRF019",
    name="share-of-unified-memory",
    severity=Severity.WARNING,
    needs=("accelerator",),
    flags=("gpu_memory_utilization", "kv_cache_memory_bytes"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count what is left for the host."""
    node = subject.node
    if node is None or not node.accelerator.unified_memory:
        return
    if subject.args.get("kv_cache_memory_bytes") is not None:
        return
    share = subject.args.get("gpu_memory_utilization", subject.engine.gpu_memory_utilization)
    total = node.accelerator.memory_total
    left = round(total * (1 - share))
    if left >= _HOST:
        return
    lower = int(100 * (total - 2 * _HOST) / total) / 100
    yield Fault(
        message=f"--gpu-memory-utilization {share:g} leaves {format_bytes(left)} of "
        f"{format_bytes(total)} for the host, which shares them",
        location=subject.place("gpu_memory_utilization"),
        fix=f"--gpu-memory-utilization {lower:g}: {format_bytes(round(total * (1 - lower)))} for "
        "the host",
        evidence=(("gpu_memory_utilization", share), ("left_bytes", left)),
    )
