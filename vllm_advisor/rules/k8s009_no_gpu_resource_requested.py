"""A server that needs a GPU runs in a container that asks for none.

## What it checks
Containers of vLLM without a GPU in their limits, without a device claim and without
NVIDIA_VISIBLE_DEVICES. In Compose also without `gpus`, `devices` and `runtime`, as a warning,
because Docker's default runtime may hand out GPUs. Builds for CPUs are left alone.

## Why it matters
The device plugin gives the container no GPU: "Failed to infer device type", or in older versions
"No platform detected, vLLM is running on UnspecifiedPlatform".

## Bad
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu-memory-utilization", "0.4"]
resources: {limits: {memory: 32Gi}}
```

## Good
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu-memory-utilization", "0.4"]
resources: {limits: {memory: 32Gi, nvidia.com/gpu: 1}}
```

## Fix
`nvidia.com/gpu` in the limits, one for each rank; with time slicing that is a slice.

## References
- https://github.com/vllm-project/vllm/issues/23661
- https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.container import Container
from vllm_advisor.rules.pods import (
    completed,
    container_of,
    in_kubernetes,
    kind_of_owner,
    ranks_here,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_COMPOSE_KEYS = ("gpus", "runtime", "devices", "device_cgroup_rules", "privileged")
_OTHERS = ("cpu", "tpu", "neuron", "gaudi", "hpu", "spyre")


@rule(id="K8S009", name="no-gpu-resource-requested", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for anything that gives the container a GPU."""
    container, instance = container_of(subject), subject.instance
    if container is None or instance is None or instance.gpus is not None or completed(subject):
        return
    if not _judged(subject, container) or _without_gpu(container):
        return
    ranks = ranks_here(subject)
    if in_kubernetes(subject):
        helm = kind_of_owner(subject) == "modelSpec"
        yield Fault(
            message="the container asks for no GPU",
            location=container.resources.location,
            fix=f"requestGPU: {ranks}" if helm else f"nvidia.com/gpu: {ranks} in resources.limits",
            evidence=(("ranks", ranks),),
        )
    elif instance.kind == "compose" and instance.pod is not None:
        view = instance.pod.owner.view
        whole = view.path[:1] == ("services",)  # else only a part of a file
        if not whole or any(view.at(key) for key in _COMPOSE_KEYS) or _reserved(subject):
            return
        yield Fault(
            message="the service reserves no GPU; it gets one only if Docker's default runtime "
            "hands them out",
            location=container.location,
            fix=f"deploy.resources.reservations.devices with driver: nvidia and count: {ranks}",
            evidence=(("ranks", ranks),),
            severity=Severity.WARNING,
        )


def _judged(subject: Subject, container: Container) -> bool:
    """Whether the container is there with all that it asks for, or says that it is no more."""
    if container.resources.limits or container.resources.requests:
        return bool(subject.args.as_dict() or subject.command.model)
    return container.image is not None and kind_of_owner(subject) != ""


def _without_gpu(container: Container) -> bool:
    """Whether it gets one in another way, or needs none."""
    image = container.image.text.lower() if container.image else ""
    others = any(f"vllm-{name}" in image or f"-{name}" in image for name in _OTHERS)
    given = any(
        one.name in ("NVIDIA_VISIBLE_DEVICES", "VLLM_CPU_KVCACHE_SPACE", "VLLM_TARGET_DEVICE")
        for one in container.env
    )
    privileged = container.security.privileged
    claimed = bool(container.resources.claims)
    return others or given or claimed or (privileged is not None and privileged.value)


def _reserved(subject: Subject) -> bool:
    instance = subject.instance
    pod = instance.pod if instance else None
    return bool(pod and pod.owner.view.at("deploy", "resources", "reservations", "devices"))
