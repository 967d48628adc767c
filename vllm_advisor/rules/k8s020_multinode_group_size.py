"""A group of pods has another size than its ranks need.

## What it checks
`size` of a LeaderWorkerSet x GPUs of a pod against the ranks of the command, and `--nnodes`
against `size`. In an LLMInferenceService of KServe, whose group has `data / dataLocal` pods: tensor
parallel ranks that are meant for several pods of a group of one.

## Why it matters
The leader waits for ranks that never come ("waiting for placement group"), or pods with GPUs stand
idle.

## Bad
```yaml
kind: LeaderWorkerSet
metadata: {name: server}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          command: ["vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "-pp=4", "--nnodes=4"]
          args: ["--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
          env: [{name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
          resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: LeaderWorkerSet
metadata: {name: server}
spec:
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          command: ["vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "-pp=4", "--nnodes=4"]
          args: ["--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
          env: [{name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
          resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
size = ranks / GPUs of a pod. Keep tensor parallel ranks in a node, and pipeline stages or data
parallel engines across nodes.

## References
- https://github.com/kserve/kserve/issues/4946
- https://lws.sigs.k8s.io/docs/overview/
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.kubernetes.objects import LLM_SERVICE
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import WORLD, world_size
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div


@rule(id="K8S020", name="multinode-group-size", severity=Severity.ERROR, flags=(*WORLD, "nnodes"))
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the size of the group with what its ranks need."""
    pod = subject.instance.pod if subject.instance else None
    if pod is None:
        return
    if pod.owner.kind == LLM_SERVICE:
        yield from _of_kserve(subject, pod.owner)
        return
    size = pod.group_size
    if size is None:
        return
    nodes, world = int(subject.args.get("nnodes", size.value)), world_size(subject)
    gpus = subject.instance.gpus if subject.instance else None
    here = None if gpus is None else gpus.value * size.value
    if nodes != size.value:
        wanted = nodes
    elif here is not None and gpus is not None and gpus.value > 0 and world > here:
        wanted = ceil_div(world, gpus.value)
    else:
        return
    yield Fault(
        message=f"the group has {size.value} pods, and its {world} ranks are spread over {wanted}",
        location=size.location,
        fix=f"size: {wanted}" + ("" if nodes == size.value else f", or --nnodes {size.value}"),
        evidence=(("size", size.value), ("ranks", world)),
    )


def _of_kserve(subject: Subject, service: DeployedObject) -> Iterator[Fault]:
    """A group that ``dataLocal`` makes, which has one pod for all of its engines."""
    parallel = service.view.at("spec", "parallelism")
    tensor, local = (parallel.at(key).placed_integer() for key in ("tensor", "dataLocal"))
    data = parallel.at("data").placed_integer()
    gpus = subject.instance.gpus if subject.instance else None
    if tensor is None or local is None or tensor.value == 1:
        return
    pods = ceil_div(data.value if data else 1, max(1, local.value))
    needed = tensor.value * local.value
    if pods > 1 or (gpus is not None and gpus.value >= needed):
        return
    yield Fault(
        message=f"data / dataLocal makes a group of {pods} pod, in which all {needed} ranks have "
        "to find their GPUs",
        location=tensor.location,
        fix=f"nvidia.com/gpu: {needed} in the container's limits, or pipeline: {tensor.value} with "
        "tensor: 1 to spread the ranks over pods",
        evidence=(("pods", pods), ("ranks", needed)),
        severity=None if gpus is not None else Severity.WARNING,
    )
