"""The weights are downloaded beside the volume that is there for them.

## What it checks
The folder of the weights (`--download-dir`, HF_HUB_CACHE, HF_HOME, HOME) of a model on the Hub
against the volumes of a container in Kubernetes: it has a volume for data, and the folder is not on
it. A container without such a volume may be meant to download at each start.

## Why it matters
The download fills the container's own disk. The node runs low on ephemeral-storage and evicts the
pod, or every restart downloads everything again, while the volume stays empty.

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
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
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
    env: [{name: HF_HOME, value: /data}]
    resources: {limits: {nvidia.com/gpu: 1}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
```

## Fix
HF_HOME on the volume, or the volume at the folder.

## References
- https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1581
- https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.model_cache import cache_dir, covering, data_mounts, on_the_hub
from vllm_advisor.rules.pods import completed, container_of, in_kubernetes, kind_of_owner
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(
    id="K8S014",
    name="model-cache-not-on-volume",
    severity=Severity.WARNING,
    flags=("model", "download_dir"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the volume on which the weights come to lie."""
    container = container_of(subject)
    if container is None or not in_kubernetes(subject) or completed(subject):
        return
    mounts = data_mounts(container)
    fragment = not kind_of_owner(subject)
    if not mounts or not (on_the_hub(subject) or (fragment and not subject.command.model)):
        return
    folder = cache_dir(subject, container)
    if folder is None:
        raise UnknownFactError("the home of the container's user, where weights go, is not known")
    if covering(subject, container) is not None:
        return
    mount = mounts[0]
    yield Fault(
        message=f"weights go to {folder}, which is not on the volume at {mount.path} but on the "
        "container's own disk",
        location=mount.location,
        fix=f"HF_HOME={mount.path}, or mountPath: {folder.removesuffix('/hub')}",
    )
