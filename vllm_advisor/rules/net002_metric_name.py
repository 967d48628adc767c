"""A query names a metric that vLLM does not have, or mixes several servers.

## What it checks
Queries of ScaledObjects, PrometheusRules and other objects: `vllm_...` where vLLM writes
`vllm:...`,
metrics that are gone, and with several servers an autoscaler's query without labels.

## Why it matters
A query of a name that is not there has no data: nothing scales and no alarm rings. Without labels
the queue of one instance scales them all.

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
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: vllm}
spec:
  scaleTargetRef: {name: vllm}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        threshold: "5"
        query: sum(vllm_num_requests_waiting)
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
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: vllm}
spec:
  scaleTargetRef: {name: vllm}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        threshold: "5"
        query: sum(vllm:num_requests_waiting)
```

## Fix
Write the name as `/metrics` has it, and `{model_name="..."}` behind it. Only an adapter that
renames metrics makes `vllm_...` right, as in a HorizontalPodAutoscaler.

## References
- vllm:0.33.0:vllm/v1/metrics/loggers.py
- https://docs.vllm.ai/en/latest/usage/metrics/
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity

_QUERIES = ("query", "expr")
_METRICS = (
    "num_requests_running|num_requests_waiting|kv_cache_usage_perc|time_to_first_token_seconds"
    "|request_queue_time_seconds|num_preemptions|e2e_request_latency_seconds"
)
_UNDERSCORE = re.compile(rf"\bvllm_(?:{_METRICS}|gpu_cache_usage_perc)\w*")
_PLAIN = re.compile(rf"\bvllm:(?:{_METRICS})\w*(?!\w|\s*{{)")
# Gone, and what took their place.
_GONE = {
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:cpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:num_requests_swapped": "vllm:num_preemptions_total",
    "vllm:gpu_prefix_cache_hit_rate": "the rates of vllm:prefix_cache_hits and _queries",
    "vllm:gpu_prefix_cache_hits": "vllm:prefix_cache_hits",
    "vllm:gpu_prefix_cache_queries": "vllm:prefix_cache_queries",
}


@source_rule(id="NET002", name="metric-name", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at every query of the source."""
    count = len(subject.deployed.instances)
    seen = set[Location]()
    for one in subject.deployed.objects:
        for query in _queries(one.view):
            place = query.value_location
            if place in seen:
                continue
            seen.add(place)
            yield from _names(query)
            plain = _PLAIN.search(query.string())
            if plain and count > 1 and one.kind == "ScaledObject":
                yield Fault(
                    message=f"{plain[0]} without labels is that of all {count} servers: the queue "
                    "of one scales another",
                    location=query.location,
                    fix=f'{plain[0]}{{model_name="MODEL"}}',
                    evidence=(("metric", plain[0]),),
                )


def _names(query: YamlValue) -> Iterator[Fault]:
    text = query.string()
    for found in dict.fromkeys(_UNDERSCORE.findall(text)):
        right = found.replace("vllm_", "vllm:", 1)
        yield Fault(
            message=f"vLLM has no metric {found}: its names have a colon",
            location=query.location,
            fix=_GONE.get(right, right),
            evidence=(("metric", found),),
        )
    for gone, now in _GONE.items():
        if re.search(rf"{gone}(?!\w)", text):
            yield Fault(
                message=f"vLLM has no metric {gone} any more",
                location=query.location,
                fix=now,
                evidence=(("metric", gone),),
            )


def _queries(view: YamlValue) -> Iterator[YamlValue]:
    for entry in view.entries():
        if entry.key in _QUERIES and entry.string():
            yield entry
        elif isinstance(entry.value, dict | list):
            yield from _queries(entry)
    for item in view.items():
        yield from _queries(item)
