"""A VLLMRuntime of several ranks, which has no shared memory.

## What it checks
Custom resources of production-stack's operator (VLLMRuntime) with a tensorParallelSize above 1.

## Why it matters
The resource has no field for a volume at /dev/shm, so its container has the default of 64 MiB, and
NCCL stops with "Error while creating shared memory segment".

## Bad
```yaml
kind: VLLMRuntime
metadata: {name: chat}
spec: {vllmConfig: {tensorParallelSize: 2}}
```

## Good
```yaml
kind: VLLMRuntime
metadata: {name: chat}
spec: {vllmConfig: {tensorParallelSize: 1}}
```

## Fix
The Helm chart instead, which mounts /dev/shm (`shmSize`), or a Deployment.

## References
- https://github.com/vllm-project/production-stack/issues/899
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import SHM_DEFAULT
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes


@source_rule(id="K8S030", name="custom-resource-without-shm", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at the size of each runtime."""
    for one in subject.deployed.of_kind("VLLMRuntime"):
        size = one.view.at("spec", "vllmConfig", "tensorParallelSize").placed_integer()
        if size is not None and size.value > 1:
            yield Fault(
                message=f"{size.value} ranks share the container's default of "
                f"{format_bytes(SHM_DEFAULT)} at /dev/shm, and the resource cannot give more",
                location=size.location,
                fix="production-stack's Helm chart with shmSize: 20Gi, or a Deployment",
                evidence=(("ranks", size.value), ("shm_bytes", SHM_DEFAULT)),
            )
