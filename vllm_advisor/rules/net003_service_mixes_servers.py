"""One Service sends requests to servers that do not serve the same.

## What it checks
Servers behind one Service: their model or served name, and `--max-model-len`.

## Why it matters
A Service takes any of its pods. A request for the other model is answered with 404, and a long
prompt fails whenever it meets the shorter server.

## Bad
```yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: short}
spec:
  selector: {matchLabels: {app: vllm, role: short}}
  template:
    metadata: {labels: {app: vllm, role: short}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B", "--max-model-len", "8192"]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: long}
spec:
  selector: {matchLabels: {app: vllm, role: long}}
  template:
    metadata: {labels: {app: vllm, role: long}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B", "--max-model-len", "32768"]
---
apiVersion: v1
kind: Service
metadata: {name: llm}
spec:
  selector: {app: vllm}
  ports: [{port: 80, targetPort: 8000}]
```

## Good
```yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: short}
spec:
  selector: {matchLabels: {app: vllm, role: short}}
  template:
    metadata: {labels: {app: vllm, role: short}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B", "--max-model-len", "8192"]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: long}
spec:
  selector: {matchLabels: {app: vllm, role: long}}
  template:
    metadata: {labels: {app: vllm, role: long}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: ["Qwen/Qwen3-8B", "--max-model-len", "32768"]
---
apiVersion: v1
kind: Service
metadata: {name: llm}
spec:
  selector: {app: vllm, role: long}
  ports: [{port: 80, targetPort: 8000}]
```

## Fix
Give every server a Service of its own, and let a router choose by model or by length.

## References
- https://kubernetes.io/docs/concepts/services-networking/service/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.finding import Severity


@source_rule(id="NET003", name="service-mixes-servers", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Group servers by the Services that select them."""
    behind: dict[str, tuple[DeployedObject, list[Subject]]] = {}
    for one in subject.subjects:
        pod = one.instance.pod if one.instance else None
        if pod is None or pod.group_role or one.command.unresolved:
            continue
        for service in pod.services:
            # A headless Service gives names to pods; clients do not come by it.
            if service.view.at("spec", "clusterIP").string().lower() != "none":
                behind.setdefault(str(service.location), (service, []))[1].append(one)
    for service, servers in behind.values():
        what = _differs(servers)
        if what:
            names = ", ".join(s.instance.name for s in servers if s.instance)
            yield Fault(
                message=f"Service {service.name} selects {names}, which differ in {what}",
                location=service.where("spec", "selector"),
                fix="one Service for each, with a label in its selector that the others do not "
                "have, and a router in front",
                evidence=(("servers", len(servers)),),
            )


def _differs(servers: list[Subject]) -> str:
    if len({_name(s) for s in servers}) > 1:
        return "the model they serve: " + " and ".join(dict.fromkeys(map(_name, servers)))
    lengths = {s.args.get("max_model_len") for s in servers}
    if len(lengths) > 1:
        written = sorted("its default" if n is None else str(n) for n in lengths)
        return f"--max-model-len: {' and '.join(written)}"
    return ""


def _name(subject: Subject) -> str:
    served = subject.args.get("served_model_name")
    return str(served[0] if isinstance(served, list | tuple) and served else served or "") or (
        subject.command.model
    )
