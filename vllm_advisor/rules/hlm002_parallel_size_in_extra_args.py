"""The chart mounts no shared memory for a parallel size in `extraArgs`.

## What it checks
`--tensor-parallel-size` above 1 in `extraArgs` of production-stack's values, without
`tensorParallelSize` and without a volume of one's own at `/dev/shm`.

## Why it matters
The chart mounts `/dev/shm` for `vllmConfig.tensorParallelSize` and for nothing else, whatever
`shmSize` says. With the 64 MiB of the container runtime NCCL fails at start-up.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 2
      vllmConfig:
        enablePrefixCaching: true
        extraArgs: ["--tensor-parallel-size", "2"]
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 2
      vllmConfig:
        enablePrefixCaching: true
        tensorParallelSize: 2
```

## Fix
Write it as `vllmConfig.tensorParallelSize`, and `shmSize` beside `vllmConfig` where 20Gi is not
what you want.

## References
- https://github.com/vllm-project/production-stack/issues/276
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.stack_values import model_spec
from vllm_advisor.types.finding import Severity


@rule(
    id="HLM002",
    name="parallel-size-in-extra-args",
    severity=Severity.ERROR,
    flags=("tensor_parallel_size",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the size with the volume that the chart mounts."""
    spec = model_spec(subject)
    container = subject.instance.container if subject.instance else None
    if spec is None or container is None or container.shared_memory is not None:
        return
    size = int(subject.args.get("tensor_parallel_size", 1))
    if size < 2:
        return
    yield Fault(
        message=f"--tensor-parallel-size {size} stands in extraArgs, for which the chart mounts no "
        "shared memory: the 64 MiB of the container runtime are too small for NCCL",
        location=subject.place("tensor_parallel_size"),
        fix=f"vllmConfig: {{tensorParallelSize: {size}}}, and take the flag out of extraArgs",
        evidence=(("tensor_parallel_size", size),),
    )
