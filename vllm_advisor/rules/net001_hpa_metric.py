"""An autoscaler watches a number that says nothing about a vLLM server's load.

## What it checks
HorizontalPodAutoscalers and KEDA's ScaledObjects that scale a server by CPU, memory or GPU
utilization.

## Why it matters
A GPU is busy at any load and the CPU idle at most. vLLM takes its memory at start-up and keeps it.
Neither says whether requests wait.

## Bad
```yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B"]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: vllm}
spec:
  minReplicas: 1
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
```

## Good
```yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B"]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: vllm}
spec:
  minReplicas: 1
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  metrics:
    - type: Pods
      pods:
        metric: {name: vllm_num_requests_waiting}
        target: {type: AverageValue, averageValue: "5"}
```

## Fix
Scale by `vllm:num_requests_waiting`, by KEDA's `prometheus` trigger or through the Prometheus
adapter, with `vllm:kv_cache_usage_perc` second.

## References
- https://keda.sh/docs/latest/scalers/prometheus/
- https://docs.vllm.ai/en/latest/design/metrics/
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity

_GPU = re.compile(r"DCGM_FI_\w*|nvidia_gpu\w*|\w*gpu_?util\w*|\w*gpu_?duty\w*", re.IGNORECASE)
_HOST = ("cpu", "memory")
_SERVER = re.compile(r"vllm|llm|serv|engine|model", re.IGNORECASE)


@source_rule(id="NET001", name="hpa-metric", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at what autoscalers of servers watch."""
    ours = [one for i in subject.deployed.instances if i.pod for one in i.pod.autoscalers]
    for one in subject.deployed.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        watched = list(_watched(one))
        if not watched:
            continue
        if one not in ours:
            if subject.deployed.instances:  # a router's, say: CPU is right for those
                watched = [w for w in watched if w[1] not in _HOST]
            elif one.view.at("spec", "scaleTargetRef", "name").string():
                watched = _of_absent(one, watched)
        for place, name in watched:
            yield Fault(
                message=f"{name} does not follow the load of a vLLM server: GPUs are busy at any "
                "load, CPUs idle, and memory is taken at start-up",
                location=place.location,
                fix="scale by vllm:num_requests_waiting (5 per replica, say), by KEDA's prometheus "
                "trigger or the Prometheus adapter",
                evidence=(("metric", name),),
            )


def _of_absent(
    one: DeployedObject, watched: list[tuple[YamlValue, str]]
) -> list[tuple[YamlValue, str]]:
    """What is wrong with an autoscaler whose target is not in the source, as far as can be told."""
    target = one.view.at("spec", "scaleTargetRef", "name").string()
    if all(name in _HOST for _, name in watched) and not _SERVER.search(target):
        what = f"whether {target}, which {one.identity} scales, is a vLLM server is not known"
        raise UnknownFactError(what, where=str(one.location))
    return watched


def _watched(one: DeployedObject) -> Iterator[tuple[YamlValue, str]]:
    """The numbers that say nothing, each with its place."""
    spec = one.view.at("spec")
    if spec.at("targetCPUUtilizationPercentage"):
        yield spec.at("targetCPUUtilizationPercentage"), "cpu"
    for metric in spec.at("metrics").items():
        for key in ("resource", "containerResource"):
            if metric.at(key, "name").string() in _HOST:
                yield metric.at(key), metric.at(key, "name").string()
        for key in ("pods", "external", "object"):
            name = metric.at(key, "metric", "name")
            if _GPU.fullmatch(name.string()):
                yield name, name.string()
    for trigger in spec.at("triggers").items():
        if trigger.at("type").string() in _HOST:
            yield trigger, trigger.at("type").string()
        query = trigger.at("metadata", "query")
        found = _GPU.search(query.string())
        if found and "vllm:" not in query.string():
            yield query, found[0]
