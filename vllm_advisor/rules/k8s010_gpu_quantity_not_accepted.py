"""A part of a GPU, or a request of GPUs without the same limit.

## What it checks
Quantities of GPUs in requests and limits of a container. They have to be whole numbers, and a
request needs an equal limit. Of production-stack, HLM010 says so.

## Why it matters
The API server refuses the pod: "must be an integer", or "Limit must be set for non overcommitable
resources".

## Bad
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {requests: {nvidia.com/gpu: 1}}
```

## Good
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}
```

## Fix
Write the number into the limits; the request follows it. For a part of a GPU use MIG devices, or
time slicing of the device plugin, where one slice is one `nvidia.com/gpu`.

## References
- https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
- https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from vllm_advisor.parse.container import Resources
from vllm_advisor.rules.pods import container_of, in_kubernetes, kind_of_owner
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="K8S010", name="gpu-quantity-not-accepted", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the quantity of the container's GPU resource."""
    container = container_of(subject)
    if container is None or not in_kubernetes(subject) or kind_of_owner(subject) == "modelSpec":
        return  # HLM010 knows the chart's keys
    resources = container.resources
    name = resources.gpu_resource
    asked = resources.limits.get(name) or resources.requests.get(name)
    if asked is None:
        return
    if asked.value.denominator != 1:
        whole = ceil(asked.value)
        yield Fault(
            message=f"{name} is {float(asked.value):g}: the API server takes whole GPUs only",
            location=asked.location,
            fix=f"{name}: {whole}, or a MIG device or a time slice for a part of one",
            evidence=(("gpus", float(asked.value)),),
        )
    else:
        yield from _unequal(resources, name)


def _unequal(resources: Resources, name: str) -> Iterator[Fault]:
    request, limit = resources.requests.get(name), resources.limits.get(name)
    if request is None or (limit is not None and limit.value == request.value):
        return
    has = "no limit" if limit is None else f"a limit of {limit.value}"
    yield Fault(
        message=f"a request of {request.value} {name} has {has}; GPUs need an equal one",
        location=request.location,
        fix=f"{name}: {request.value} in resources.limits",
    )
