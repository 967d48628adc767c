"""K3s and RKE2 give a GPU only to pods of the runtime class nvidia.

## What it checks
Pods with `nvidia.com/gpu` and without runtimeClassName, where the source shows K3s or RKE2: claims
of the storage class local-path, or labels of its nodes.

## Why it matters
Their containerd keeps runc as its default. The device plugin allots a GPU, but the container sees
none: "Failed to infer device type".

## Bad
```yaml
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], storageClassName: local-path}
---
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], storageClassName: local-path}
---
kind: Pod
metadata: {name: server}
spec:
  runtimeClassName: nvidia
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
`runtimeClassName: nvidia` in the pod's spec, unless nvidia is the default runtime of the nodes.

## References
- https://docs.k3s.io/advanced#nvidia-container-runtime
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="K8S024", name="runtimeclass-nvidia", severity=Severity.INFO)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the signs of K3s."""
    instance = subject.instance
    pod = instance.pod if instance else None
    if instance is None or pod is None or instance.container is None or pod.runtime_class:
        return
    if not instance.container.resources.gpu_resource.startswith("nvidia.com/"):
        return
    if _distribution(subject):
        yield Fault(
            message="the pod has no runtimeClassName, and the source looks like K3s or RKE2, "
            "where containers without it see no GPU",
            location=pod.location,
            fix="runtimeClassName: nvidia",
        )


def _distribution(subject: Subject) -> bool:
    """Whether the source shows K3s or RKE2."""
    deployed, pod = subject.deployed, subject.instance.pod if subject.instance else None
    claims = deployed.of_kind("PersistentVolumeClaim") if deployed else ()
    local = any(one.view.at("spec", "storageClassName").string() == "local-path" for one in claims)
    labels = [text for one in (pod.selections if pod else ()) for text in (one.label, *one.values)]
    return local or any("k3s" in text or "rke2" in text for text in labels)
