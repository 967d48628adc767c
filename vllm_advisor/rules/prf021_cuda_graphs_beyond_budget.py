"""CUDA graphs are captured beyond the budget, and there is no room for them.

## What it checks
`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0`, which makes vLLM leave CUDA graphs out of its budget,
or a version that never counts them: what `--gpu-memory-utilization` leaves of the GPU, less what is
held before vLLM starts, against the estimate of the graphs.

## Why it matters
The KV cache is allocated first, the graphs are captured after it. Where the rest of the GPU is
smaller than they are, the start ends out of memory.

## Bad
```bash
# gpu: l4 x 1
VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 vllm serve Qwen/Qwen3-8B --max-model-len 8192 \
  --max-num-seqs 64 --gpu-memory-utilization 0.95
```

## Good
```bash
# gpu: l4 x 1
VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 vllm serve Qwen/Qwen3-8B --max-model-len 8192 \
  --max-num-seqs 64 --gpu-memory-utilization 0.88
```

## Fix
Leave the variable out, or lower `--gpu-memory-utilization` by what the graphs take.

## References
- vllm:0.33.0:vllm/envs.py#VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS
- vllm:0.33.0:vllm/v1/worker/gpu_worker.py#determine_available_memory
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes

_VARIABLE = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
_OFF = ("0", "false")


@rule(
    id="PRF021",
    name="cuda-graphs-beyond-budget",
    severity=Severity.WARNING,
    needs=("accelerator", "settings", "figures"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare what is left with the graphs."""
    before, settings, figures = subject.before_start_bytes, subject.settings, subject.figures
    if before is None or settings is None or figures is None or figures.budget is None:
        return
    if settings.enforce_eager or settings.kv_cache_memory_bytes is not None:
        return
    counted = load_overheads(subject.engine.version_used or subject.engine.version).graphs_set_aside
    switched_off = subject.command.env.get(_VARIABLE, "1").strip().lower() in _OFF
    if counted and not switched_off:
        return
    budget = figures.budget
    graphs, total = int(budget.cuda_graphs.value), int(budget.total.value)
    left = total - int(budget.requested.value) - before
    if not graphs or left >= graphs:
        return
    lower = int(100 * (total - before - graphs) / total) / 100
    why = f"leave {_VARIABLE} out, or " if switched_off else ""
    yield Fault(
        message=f"CUDA graphs of about {format_bytes(graphs)} are captured beyond the budget, and "
        f"{format_bytes(max(0, left))} of the GPU are left",
        location=subject.place("gpu_memory_utilization"),
        fix=f"{why}--gpu-memory-utilization {lower:g}",
        evidence=(("cuda_graph_bytes", graphs), ("left_bytes", left)),
    )
