"""Weights and overhead take all of the memory, and nothing is left for a KV cache.

## What it checks
The memory vLLM may take (`--gpu-memory-utilization` of the GPU), less weights, activations, CUDA
graphs and other memory.

## Why it matters
vLLM refuses to start with "No available memory for the cache blocks", or runs out of memory while
it loads the weights.

## Bad
```bash
# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.3-70B-Instruct --max-model-len 8192
```

## Good
```bash
# gpu: h100-sxm x 4
vllm serve meta-llama/Llama-3.3-70B-Instruct --max-model-len 8192 --tensor-parallel-size 4
```

## Fix
Take one of the flags that are named; each was computed to be enough by itself. Where none is, the
model needs more GPUs or weights with fewer bits.

## References
- vllm:0.33.0:vllm/v1/core/kv_cache_planning.py#_check_enough_kv_cache_memory
- vllm:0.33.0:vllm/v1/worker/gpu_worker.py#determine_available_memory
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.memory_remedies import memory_remedies
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes


@rule(
    id="KV002",
    name="no-memory-for-cache",
    severity=Severity.ERROR,
    needs=("model", "settings", "figures"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask whether anything is left for the cache."""
    figures = subject.figures
    if figures is None or not figures.capacity.groups or figures.capacity.available_bytes > 0:
        return
    short = -figures.capacity.available_bytes
    evidence: tuple[tuple[str, str | int | float], ...] = (("available_bytes", -short),)
    message = f"no memory is left for the KV cache: {format_bytes(short)} are missing per GPU"
    if figures.budget is not None:
        budget = figures.budget
        message += (
            f" ({format_bytes(int(budget.weights.value))} of weights in "
            f"{format_bytes(int(budget.requested.value))})"
        )
        evidence += tuple((f.id.removeprefix("memory."), f.value) for f in budget.figures)
    enough = memory_remedies(subject)
    yield Fault(
        message=message,
        location=subject.place("gpu_memory_utilization", "tensor_parallel_size"),
        fix=", or ".join(enough)
        or f"more GPUs, or weights with fewer bits: {format_bytes(short)} are missing per GPU",
        evidence=evidence,
    )
