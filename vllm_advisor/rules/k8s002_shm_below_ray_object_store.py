"""Ray's object store is told to be larger than /dev/shm.

## What it checks
`--object-store-memory` of a `ray start` and `object-store-memory` of a RayCluster against the size
of the volume at /dev/shm of the same pod, which is 64 MiB where there is none.

## Why it matters
Ray keeps its object store in /dev/shm. It refuses to start with "The configured object store size
exceeds /dev/shm size".

## Bad
```yaml
kind: Pod
metadata: {name: ray}
spec:
  containers:
  - name: vllm
    command: ["bash", "-c", "ray start --head --object-store-memory=4294967296 && sleep inf"]
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
```

## Good
```yaml
kind: Pod
metadata: {name: ray}
spec:
  containers:
  - name: vllm
    command: ["bash", "-c", "ray start --head --object-store-memory=1073741824 && sleep inf"]
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
```

## Fix
Make /dev/shm at least as large as the object store, or lower the object store. vLLM itself needs
little of it.

## References
- https://docs.ray.io/en/latest/ray-core/scheduling/memory-management.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.parse.container import SharedMemory
from vllm_advisor.parse.kubernetes.containers import container_of
from vllm_advisor.parse.kubernetes.objects import PodSource, pods_in
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.pods import SHM_DEFAULT
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, ceil_div, format_bytes

_OPTION = re.compile(r"--object[-_]store[-_]memory[= ]\s*['\"]?(\d+)")


@source_rule(id="K8S002", name="shm-below-ray-object-store", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Compare the stores of all pods with their shared memory."""
    if subject.deployed.kind != "kubernetes":
        return
    for one in subject.deployed.objects:
        for pod in pods_in(one):
            for view in pod.containers:
                store = _store(view) or _parameter(pod)
                if store is not None:
                    yield from _compared(*store, _shared(view, pod, subject))


def _store(view: YamlValue) -> tuple[int, Location] | None:
    """What a command of a container gives ``ray start``."""
    for key in ("command", "args"):
        words = [*view.at(key).items()] or [view.at(key)]
        text = " ".join(word.string() for word in words)
        if "ray start" in text and (match := _OPTION.search(text)):
            return int(match[1]), view.at(key).location
    return None


def _parameter(pod: PodSource) -> tuple[int, Location] | None:
    """``rayStartParams`` of the group that the pod is of."""
    group = pod.owner.view.document.root.at(*pod.template.path[:-1])
    stated = group.at("rayStartParams", "object-store-memory").placed_integer()
    return None if stated is None else (stated.value, stated.location)


def _shared(view: YamlValue, pod: PodSource, subject: SourceSubject) -> SharedMemory | None:
    return container_of(view, pod, subject.deployed.objects).shared_memory


def _compared(store: int, place: Location, shared: SharedMemory | None) -> Iterator[Fault]:
    size = SHM_DEFAULT if shared is None else shared.size
    if size is None or store <= size:
        return
    yield Fault(
        message=f"an object store of {format_bytes(store)} does not fit into /dev/shm with "
        f"{format_bytes(size)}",
        location=place,
        fix=f"sizeLimit: {ceil_div(store, GIB)}Gi for the memory-backed emptyDir at /dev/shm, or "
        f"--object-store-memory={size}",
        evidence=(("object_store_bytes", store), ("shm_bytes", size)),
    )
