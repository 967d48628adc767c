"""The place for the weights is smaller than the weights.

## What it checks
The size of the model's files against the emptyDir or the claim they are downloaded to, and where
they go to an emptyDir or to the container's own disk, against the limit of ephemeral-storage.

## Why it matters
The kubelet evicts a pod whose emptyDir or ephemeral storage grows beyond its limit; on a claim that
is full the download stops with "No space left on device".

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
    resources: {limits: {nvidia.com/gpu: 1}}
    env: [{name: HF_HOME, value: /models}]
    volumeMounts: [{name: cache, mountPath: /models}]
  volumes: [{name: cache, emptyDir: {sizeLimit: 10Gi}}]
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
    resources: {limits: {nvidia.com/gpu: 1}}
    env: [{name: HF_HOME, value: /models}]
    volumeMounts: [{name: cache, mountPath: /models}]
  volumes: [{name: cache, emptyDir: {sizeLimit: 30Gi}}]
```

## Fix
Room for the files, a fifth more for a download in progress, and 10 GiB for logs and kernels.

## References
- https://kubernetes.io/docs/concepts/storage/ephemeral-storage/
- https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1581
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.container import Container, Mount
from vllm_advisor.rules.model_cache import covering, on_the_hub
from vllm_advisor.rules.pods import (
    checkpoint_bytes,
    completed,
    container_of,
    in_kubernetes,
    needs_of,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB, format_bytes


@rule(
    id="K8S015",
    name="volume-below-checkpoint",
    severity=Severity.ERROR,
    flags=("model", "download_dir"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare each limit on the way of the weights with their size."""
    container = container_of(subject)
    if container is None or not in_kubernetes(subject) or completed(subject):
        return
    if not on_the_hub(subject):
        return
    mount = covering(subject, container)
    bounds = [*_bounds(container, mount)]
    size = checkpoint_bytes(subject)
    if bounds and size is None:
        raise UnknownFactError(subject.why_missing("model") or "the model is not known")
    for name, most, place in bounds:
        if size is not None and most < size:
            needs = needs_of(subject, size, weights_on_node=True)
            claim = mount is not None and mount.kind not in ("emptyDir", "")
            wanted = needs.claim if claim else needs.ephemeral_storage
            yield Fault(
                message=f"{format_bytes(size)} of weights go to {name} of {format_bytes(most)}",
                location=place,
                fix=f"{int(wanted.value) // GIB}Gi",
                evidence=(("checkpoint_bytes", size), ("limit_bytes", most)),
            )


def _bounds(container: Container, mount: Mount | None) -> Iterator[tuple[str, int, Location]]:
    """What limits the weights: a name for it, bytes, and where it is written."""
    if mount is not None and mount.size is not None:
        name = "an emptyDir" if mount.kind == "emptyDir" else "a claim"
        yield name, mount.size, mount.volume_location
    on_disk = mount is None or (mount.kind == "emptyDir" and mount.medium != "Memory")
    limit = container.resources.limits.get("ephemeral-storage")
    if on_disk and limit is not None:
        yield "ephemeral storage with a limit", int(limit.value), limit.location
