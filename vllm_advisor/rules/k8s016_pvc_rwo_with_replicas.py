"""Several pods share a claim that one node, or one pod, may mount.

## What it checks
The access modes of claims against the number of servers that use them: replicas, autoscalers,
groups, and several workloads with the same claim. ReadWriteOncePod with several pods is an error,
and so is ReadWriteOnce where they need more than 16 GPUs, which no node has.

## Why it matters
ReadWriteOnce means one node. Pods on other nodes wait for ever: "Multi-Attach error for volume".

## Bad
```yaml
kind: Deployment
metadata: {name: server}
spec:
  replicas: 2
  strategy: {type: Recreate}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        args: ["--model", "Qwen/Qwen3-8B"]
        resources: {limits: {nvidia.com/gpu: 1}}
        env: [{name: HF_HOME, value: /models}]
        volumeMounts: [{name: models, mountPath: /models}]
      volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
---
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 50Gi}}}
```

## Good
```yaml
kind: Deployment
metadata: {name: server}
spec:
  replicas: 2
  strategy: {type: Recreate}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        args: ["--model", "Qwen/Qwen3-8B"]
        resources: {limits: {nvidia.com/gpu: 1}}
        env: [{name: HF_HOME, value: /models}]
        volumeMounts: [{name: models, mountPath: /models}]
      volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
---
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 50Gi}}}
```

## Fix
ReadWriteMany, a claim for each replica (volumeClaimTemplates of a StatefulSet), or a filled volume
that is mounted ReadOnlyMany.

## References
- https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.container import Mount
from vllm_advisor.parse.kubernetes_semantics.volumes import ONE_NODE, SCALERS
from vllm_advisor.rules.pods import container_of, gpus_here, in_kubernetes, nodes_of
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.finding import Severity

_LARGEST = 16  # GPUs of one node


@source_rule(id="K8S016", name="pvc-rwo-with-replicas", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Count the pods that use each claim."""
    users: dict[tuple[str, str], list[tuple[Mount, Subject]]] = {}
    for one in subject.subjects:
        container = container_of(one)
        if container is None or not in_kubernetes(one):
            continue
        for mount in container.mounts:
            modes = mount.access_modes
            if mount.kind == "persistentVolumeClaim" and modes and set(modes) <= set(ONE_NODE):
                users.setdefault(_claim(mount, one), []).append((mount, one))
    for found in users.values():
        pods = sum(_pods(one) for _, one in found)
        if pods > 1:
            yield _fault(found[-1][0], pods, sum(_pods(one) * gpus_here(one) for _, one in found))


def _claim(mount: Mount, subject: Subject) -> tuple[str, str]:
    """What tells a claim from others; the chart makes one for each model."""
    pod = subject.instance.pod if subject.instance else None
    namespace = pod.owner.namespace if pod else ""
    own = pod.owner.name if pod and not mount.source else ""
    return namespace or "default", mount.source or f"claim of {own}"


def _pods(subject: Subject) -> int:
    """How many pods of a server there may be at once."""
    pod = subject.instance.pod if subject.instance else None
    if pod is None:
        return 1
    if pod.owner.kind == "DaemonSet":
        return 2  # one on each node
    counts = [pod.replicas.value if pod.replicas else 1]
    for scaler in pod.autoscalers:
        most = scaler.view.at("spec", SCALERS.get(scaler.kind, "")).placed_integer()
        counts += [most.value] if most else []
    return max(counts) * (nodes_of(subject) if pod.group_size else 1)


def _fault(mount: Mount, pods: int, gpus: int) -> Fault:
    mode = mount.access_modes[0]
    sure = mode == "ReadWriteOncePod" or gpus > _LARGEST
    return Fault(
        message=f"{pods} pods with {gpus} GPUs share a {mode} claim",
        location=mount.volume_location,
        fix="accessModes: [ReadWriteMany], or a claim for each replica",
        evidence=(("pods", pods), ("gpus", gpus)),
        severity=Severity.ERROR if sure else None,
    )
