"""A slice of a GPU's time, and nearly all of its memory.

## What it checks
Pods that ask for `nvidia.com/gpu.shared`, the device plugin's name for a time slice, and leave
`--gpu-memory-utilization` above one half.

## Why it matters
Time slicing divides no memory. The first server takes its share of the whole GPU, and the next one
stops with "Free memory on device ... is less than desired GPU memory utilization".

## Bad
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "Qwen/Qwen3-8B"]
resources: {limits: {nvidia.com/gpu.shared: 1}}
```

## Good
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "Qwen/Qwen3-8B", "--gpu-memory-utilization", "0.45"]
resources: {limits: {nvidia.com/gpu.shared: 1}}
```

## Fix
`--gpu-memory-utilization` of 0.9 divided by the servers on the GPU, or MIG, which divides memory.

## References
- https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus
- vllm:0.33.0:vllm/v1/worker/utils.py#request_memory
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_FLAGS = ("gpu_memory_utilization", "kv_cache_memory_bytes")


@rule(id="K8S011", name="gpu-share-without-memory-share", severity=Severity.WARNING, flags=_FLAGS)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the share of the memory with one half."""
    container = container_of(subject)
    if container is None or not container.resources.gpu_resource.endswith(".shared"):
        return
    default = subject.engine.flags["gpu_memory_utilization"].default
    share = float(subject.args.get("gpu_memory_utilization", default))
    if share <= 0.5 or subject.args.get("kv_cache_memory_bytes") is not None:
        return
    yield Fault(
        message=f"the server takes {share:g} of a GPU's memory, and shares the GPU",
        location=subject.place("gpu_memory_utilization"),
        fix="--gpu-memory-utilization 0.45 for two servers on the GPU",
        evidence=(("gpu_memory_utilization", share),),
    )
