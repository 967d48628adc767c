"""Slices of GPUs by HAMi cannot share memory as vLLM's all-reduce does.

## What it checks
Containers with `nvidia.com/gpumem`, `nvidia.com/gpumem-percentage` or `nvidia.com/gpucores`, more
than one tensor parallel rank, and without `--disable-custom-all-reduce`.

## Why it matters
vLLM's kernel opens the memory of other ranks with CUDA IPC, which the layer of the virtual GPUs
refuses: "custom_all_reduce.cuh:455 'invalid argument'".

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen2.5-14B-Instruct", "-tp", "2"]
    resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50}}
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
  volumes: [{name: shm, emptyDir: {medium: Memory}}]
```

## Good
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen2.5-14B-Instruct", "-tp", "2", "--disable-custom-all-reduce"]
    resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50}}
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
  volumes: [{name: shm, emptyDir: {medium: Memory}}]
```

## Fix
`--disable-custom-all-reduce`; NCCL takes over.

## References
- https://github.com/Project-HAMi/HAMi/pull/1947
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_SLICES = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@rule(
    id="K8S025",
    name="custom-all-reduce-on-vgpu",
    severity=Severity.WARNING,
    flags=("tensor_parallel_size", "disable_custom_all_reduce"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for slices and for the flag."""
    container = container_of(subject)
    if container is None or int(subject.args.get("tensor_parallel_size", 1)) == 1:
        return
    if subject.args.get("disable_custom_all_reduce"):
        return
    asked = {**container.resources.requests, **container.resources.limits}
    slices = next((placed for name, placed in asked.items() if name in _SLICES), None)
    if slices is not None:
        yield Fault(
            message="the ranks run on slices of GPUs, between which vLLM's custom all-reduce "
            "does not work",
            location=slices.location,
            fix="--disable-custom-all-reduce",
        )
