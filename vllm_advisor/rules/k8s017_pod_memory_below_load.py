"""The memory limit of the container is below what loading takes.

## What it checks
The memory limit against 8 GiB for the server, 4 GiB for each GPU's process, /dev/shm, volumes in
memory, and the part of the weights that is being read, at most 5 GiB for each GPU: what a plan
requests. Of an unknown model half of the first three is certain.

## Why it matters
The kernel kills a process of the container when the limit is reached (OOMKilled), mostly while the
model loads, without a word in vLLM's log.

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
    resources: {limits: {nvidia.com/gpu: 1, memory: 4Gi}}
```

## Good
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
    resources: {limits: {nvidia.com/gpu: 1, memory: 24Gi}}
```

## Fix
A limit of at least that sum; with room for all weights they stay in the page cache, and a restart
is faster.

## References
- https://github.com/vllm-project/vllm/issues/28923
- https://github.com/vllm-project/vllm/issues/23661
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.container import Container
from vllm_advisor.parse.kubernetes.volumes import SHM
from vllm_advisor.rules.pods import checkpoint_bytes, container_of, needs_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, ceil_div, format_bytes


@rule(
    id="K8S017",
    name="pod-memory-below-load",
    severity=Severity.WARNING,
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the limit with the sum."""
    container = container_of(subject)
    limit = container.resources.limits.get("memory") if container else None
    if container is None or limit is None:
        return
    size = checkpoint_bytes(subject)
    needs = needs_of(subject, size or 0)
    needed = int(needs.memory_request.value) + _in_memory(container)
    if size is None:
        needed //= 2
    if limit.value >= needed:
        if size is None:
            raise UnknownFactError(subject.why_missing("model") or "the model is not known")
        return
    yield Fault(
        message=f"loading takes about {format_bytes(needed)} of memory, and the limit is "
        f"{format_bytes(int(limit.value))}",
        location=limit.location,
        fix=f"a memory limit of {ceil_div(needed, GIB)}Gi or more, at best "
        f"{(int(needs.memory_limit.value) + _in_memory(container)) // GIB}Gi",
        evidence=(("needed_bytes", needed), ("limit_bytes", int(limit.value))),
    )


def _in_memory(container: Container) -> int:
    """Bytes of volumes in memory that count against the limit, beside /dev/shm."""
    return sum(
        mount.size or 0
        for mount in container.mounts
        if mount.medium == "Memory" and mount.path.rstrip("/") != SHM
    )
