"""The CPU limit is below the processes that run all the time.

## What it checks
The CPU limit against one core for each process: API server, engine core, and one busy-waiting
process for each GPU; with data parallel engines more.

## Why it matters
The kernel stops all processes of the container for a part of each period. Scheduling and sampling
wait, the GPU idles, and the time to the next token jumps.

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1, cpu: 1000m}}
```

## Good
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1, cpu: 3}}
```

## Fix
2 + number of GPUs, or no CPU limit at all: a request keeps the cores for the pod without stopping
it.

## References
- https://docs.vllm.ai/en/latest/design/arch_overview
- https://github.com/vllm-project/vllm/issues/23661
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of, needs_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD
from vllm_advisor.types.finding import Severity


@rule(
    id="K8S018",
    name="cpu-limit-low",
    severity=Severity.WARNING,
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the limit with the number of processes."""
    container = container_of(subject)
    limit = container.resources.limits.get("cpu") if container else None
    if limit is None:
        return
    cores = needs_of(subject, 0).cpu
    if limit.value >= cores.value:
        return
    yield Fault(
        message=f"a limit of {float(limit.value):g} CPU, and {cores.value} cores are busy all the "
        f"time ({cores.formula})",
        location=limit.location,
        fix=f"a CPU limit of {cores.value} or more, or a request without a limit",
        evidence=(("cpu_limit", float(limit.value)), ("cores", cores.value)),
    )
