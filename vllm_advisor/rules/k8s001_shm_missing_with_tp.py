"""Several ranks in one container, and too little shared memory between them.

## What it checks
The tensor, pipeline and context parallel ranks of one container against what is at /dev/shm: a
volume, `--shm-size`, `shm_size` or the host's. Without any of these it has 64 MiB.

## Why it matters
NCCL keeps its segments there (about 9.6 MB each in the reports) and vLLM its message queues. The
server stops with "Error while creating shared memory segment /dev/shm/nccl-...". A size below
1 GiB is a warning, and so is a container that stands without the pod that may have a volume.

## Bad
```yaml
containers:
- name: vllm
  image: vllm/vllm-openai:v0.33.0
  args: ["--model", "Qwen/Qwen2.5-14B-Instruct", "--tensor-parallel-size", "2"]
  resources: {limits: {nvidia.com/gpu: 2}}
```

## Good
```yaml
containers:
- name: vllm
  image: vllm/vllm-openai:v0.33.0
  args: ["--model", "Qwen/Qwen2.5-14B-Instruct", "--tensor-parallel-size", "2"]
  resources: {limits: {nvidia.com/gpu: 2}}
  volumeMounts: [{name: shm, mountPath: /dev/shm}]
volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
```

## Fix
Mount a memory-backed emptyDir at /dev/shm, or give Docker `--shm-size` or `--ipc=host`: 2 GiB, or
1 GiB for each GPU where there are more than two.

## References
- https://github.com/vllm-project/vllm/issues/1710
- https://github.com/vllm-project/production-stack/issues/97
- https://docs.vllm.ai/en/latest/deployment/k8s
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.container import SharedMemory
from vllm_advisor.rules.pods import (
    KUBERNETES,
    SHM_DEFAULT,
    completed,
    container_of,
    lone_container,
    needs_of,
    ranks_here,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD, world_size
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, format_bytes

_ENOUGH = GIB  # KServe's own size


@rule(
    id="K8S001",
    name="shm-missing-with-tp",
    severity=Severity.ERROR,
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the ranks of the container with its shared memory."""
    container = container_of(subject)
    if container is None or world_size(subject) == 1 or ranks_here(subject) <= 1:
        return
    shared = container.shared_memory
    size = _size(shared)
    if size is None or size >= _ENOUGH or (shared is None and completed(subject)):
        return
    if shared is None and _arguments_alone(subject):
        raise UnknownFactError("the source shows arguments alone, not what their container has")
    has = f"the container's default of {format_bytes(size)}" if shared is None else "only "
    has += "" if shared is None else format_bytes(size)
    shm = needs_of(subject, 0).shm
    wanted = int(shm.value) // GIB if shm else 2
    yield Fault(
        message=f"{ranks_here(subject)} ranks share /dev/shm, which has {has}",
        location=shared.location if shared else subject.place(*WORLD),
        fix=_fix(subject, wanted),
        evidence=(("ranks", ranks_here(subject)), ("shm_bytes", size)),
        severity=None if size <= SHM_DEFAULT and not lone_container(subject) else Severity.WARNING,
    )


def _arguments_alone(subject: Subject) -> bool:
    """Whether nothing of the container is shown beside its command."""
    container = container_of(subject)
    shown = container is not None and (
        container.image or container.resources.limits or container.resources.requests
    )
    return lone_container(subject) and not shown and not (container and container.mounts)


def _size(shared: SharedMemory | None) -> int | None:
    """Bytes at /dev/shm; None where it is enough, or where nobody says."""
    return SHM_DEFAULT if shared is None else shared.size


def _fix(subject: Subject, gib: int) -> str:
    instance = subject.instance
    if instance is not None and instance.kind == "helm-production-stack":
        return (
            "vllmConfig.tensorParallelSize instead of the flag in extraArgs, for which the chart "
            f"mounts /dev/shm; shmSize: {gib}Gi sets its size"
        )
    if instance is not None and instance.kind in KUBERNETES:
        return f"an emptyDir with medium: Memory and sizeLimit: {gib}Gi mounted at /dev/shm"
    if instance is not None and instance.kind == "compose":
        return f"shm_size: {gib}gb, or ipc: host"
    return f"--shm-size {gib}g, or --ipc=host"
