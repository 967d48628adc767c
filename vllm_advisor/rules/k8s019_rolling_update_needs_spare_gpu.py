"""An update starts new pods before old ones give their GPUs back.

## What it checks
Deployments with GPUs, and production-stack, whose rollout starts a pod more (maxSurge) and lets
none go before (maxUnavailable 0). That is also what a Deployment of one to three replicas does when
nothing is written, and production-stack's chart, which doubles all pods. One pod more that is
written down is a choice, and is only mentioned.

## Why it matters
Without as many free GPUs the new pod stays Pending, and the update hangs until somebody deletes an
old one.

## Bad
```yaml
kind: Deployment
metadata: {name: server}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: "100%", maxUnavailable: 0}}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        args: ["--model", "Qwen/Qwen3-8B"]
        resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: Deployment
metadata: {name: server}
spec:
  replicas: 1
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        args: ["--model", "Qwen/Qwen3-8B"]
        resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
`maxSurge: 0` with `maxUnavailable: 1`, or `type: Recreate` for one replica; keep the rollout where
the cluster has spare GPUs.

## References
- https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment
- https://github.com/vllm-project/production-stack
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.stack_values import part
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div

_DEPLOYMENT = ("25%", "25%")  # Kubernetes' defaults
_DEFAULTS = {"Deployment": _DEPLOYMENT, "modelSpec": ("100%", "0")}


@rule(id="K8S019", name="rolling-update-needs-spare-gpu", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Work out how many pods come before any goes."""
    instance = subject.instance
    pod = instance.pod if instance else None
    if instance is None or pod is None or pod.owner.kind not in _DEFAULTS:
        return
    if instance.gpus is None or instance.gpus.value == 0:
        return
    rollout = pod.rollout
    if rollout is not None and rollout.strategy == "Recreate":
        return
    surge, unavailable = _DEFAULTS[pod.owner.kind]
    if rollout is not None:
        surge = rollout.max_surge.value if rollout.max_surge else _DEPLOYMENT[0]
        unavailable = rollout.max_unavailable.value if rollout.max_unavailable else _DEPLOYMENT[1]
    helm = pod.owner.kind == "modelSpec"
    if (
        helm
        and subject.deployed is not None
        and part(subject.deployed, "servingEngineSpec") is None
    ):
        raise UnknownFactError("how pods are replaced: the values have no servingEngineSpec")
    replicas = pod.replicas.value if pod.replicas else 1
    more, fewer = _pods(surge, replicas, up=True), _pods(unavailable, replicas, up=False)
    if more is None or fewer is None or more == 0 or fewer > 0 or replicas == 0:
        return
    gpus = more * instance.gpus.value
    yield Fault(
        message=f"an update needs {gpus} spare GPUs: maxSurge is {surge}, maxUnavailable "
        f"{unavailable}, of {replicas} replicas",
        location=rollout.location if rollout else pod.owner.location,
        fix=("servingEngineSpec." if helm else "")
        + "strategy.rollingUpdate with maxSurge: 0 and maxUnavailable: 1",
        evidence=(("spare_gpus", gpus),),
        severity=Severity.INFO if rollout is not None and surge == "1" else None,
    )


def _pods(text: str, replicas: int, *, up: bool) -> int | None:
    """Pods of a number or a percentage; Kubernetes rounds surge up and the other down."""
    number, percent, _ = text.partition("%")
    if not number.isdecimal():
        return None
    if not percent:
        return int(number)
    share = replicas * int(number)
    return ceil_div(share, 100) if up else share // 100
