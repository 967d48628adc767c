"""Pods of one replica tell each other the wrong address.

## What it checks
VLLM_HOST_IP of servers that span several pods: one literal address for all of them is a warning.
Without it, in the host's network, vLLM takes the address of its route to the internet, which is
mentioned.

## Why it matters
Ranks connect to the address that each pod announces. The same one twice, or that of a management
network, and the start hangs until it times out.

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
          command: ["vllm", "serve", "Qwen/Qwen2.5-14B-Instruct", "-pp=2", "--nnodes=2"]
          args: ["--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
          env: [{name: VLLM_HOST_IP, value: "10.0.0.5"}]
          resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
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
          command: ["vllm", "serve", "Qwen/Qwen2.5-14B-Instruct", "-pp=2", "--nnodes=2"]
          args: ["--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
          env: [{name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
          resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
VLLM_HOST_IP from `status.podIP`, or from a script that reads the address of the fast network.

## References
- vllm:0.33.0:vllm/utils/network_utils.py#get_ip
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of, in_kubernetes, nodes_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_LITERAL = re.compile(r"[\d.]+|[\da-fA-F:]+")


@rule(id="K8S027", name="host-ip-in-multi-node", severity=Severity.WARNING, flags=("nnodes",))
def check(subject: Subject) -> Iterator[Fault]:
    """Look at what the pods announce."""
    container, pod = container_of(subject), subject.instance.pod if subject.instance else None
    if container is None or pod is None or not in_kubernetes(subject) or nodes_of(subject) == 1:
        return
    variable = container.variable("VLLM_HOST_IP")
    fix = "VLLM_HOST_IP from fieldRef: {fieldPath: status.podIP}"
    template = pod.group_size is not None and pod.group_role != "leader"
    if (
        variable is not None
        and variable.source == "value"
        and _LITERAL.fullmatch(variable.value or "")
    ):
        if template or pod.owner.view.at("spec", "leaderWorkerTemplate", "workerTemplate"):
            yield Fault(
                message=f"every pod of the group announces {variable.value}",
                location=variable.location,
                fix=fix,
            )
    elif variable is None and pod.host_network is not None and pod.host_network.value:
        yield Fault(
            message="the pods are in the host's network and do not say which of its addresses "
            "the ranks connect to",
            location=pod.host_network.location,
            fix=fix,
            severity=Severity.INFO,
        )
