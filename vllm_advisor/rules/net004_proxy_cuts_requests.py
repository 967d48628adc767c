"""nginx in front of a server cuts long prompts or slow answers.

## What it checks
Ingresses of class nginx in front of servers, and the router's in production-stack's values: the
annotations `proxy-read-timeout` (60 s where left out) and `proxy-body-size` (1 MiB).

## Why it matters
nginx gives up when nothing comes for the timeout: a long prefill, a queue, or an answer that is not
streamed. A larger body, such as a long document or an image, is answered with 413.

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
apiVersion: v1
kind: Service
metadata: {name: vllm}
spec:
  selector: {app: vllm}
  ports: [{port: 80, targetPort: 8000}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: vllm
  annotations:
    nginx.ingress.kubernetes.io/proxy-body-size: 64m
spec:
  ingressClassName: nginx
  rules:
    - http:
        paths:
          - {path: /v1, pathType: Prefix, backend: {service: {name: vllm, port: {number: 80}}}}
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
apiVersion: v1
kind: Service
metadata: {name: vllm}
spec:
  selector: {app: vllm}
  ports: [{port: 80, targetPort: 8000}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: vllm
  annotations:
    nginx.ingress.kubernetes.io/proxy-read-timeout: "3600"
    nginx.ingress.kubernetes.io/proxy-body-size: 64m
spec:
  ingressClassName: nginx
  rules:
    - http:
        paths:
          - {path: /v1, pathType: Prefix, backend: {service: {name: vllm, port: {number: 80}}}}
```

## Fix
`nginx.ingress.kubernetes.io/proxy-read-timeout: "3600"` and
`nginx.ingress.kubernetes.io/proxy-body-size: 64m`.

## References
- https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.docker_units import docker_bytes
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import part
from vllm_advisor.types.finding import Severity

_PREFIX = "nginx.ingress.kubernetes.io/"
_CLASS = "kubernetes.io/ingress.class"
_SECONDS, _BODY = 60, 1 << 20  # nginx's own, where nothing is said
_ENOUGH = 300  # a long prefill behind a queue, and an answer that is not streamed


@source_rule(id="NET004", name="proxy-cuts-requests", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at Ingresses that lead to a server."""
    for notes, place in _ingresses(subject):
        timeout = notes.at(f"{_PREFIX}proxy-read-timeout")
        body = notes.at(f"{_PREFIX}proxy-body-size")
        text = timeout.string().removesuffix("s")
        seconds = int(text) if text.isdecimal() else _SECONDS
        size = docker_bytes(body.string()) if body else _BODY
        if seconds < _ENOUGH:
            yield Fault(
                message=f"nginx gives up after {seconds} s without a byte: long prefills and "
                "answers that are not streamed take longer",
                location=(timeout or place).location,
                fix=f'{_PREFIX}proxy-read-timeout: "3600"',
                evidence=(("seconds", seconds),),
            )
        if size is not None and 0 < size <= _BODY:
            yield Fault(
                message=f"nginx refuses bodies above {size:,} bytes with 413: long documents and "
                "images are larger",
                location=(body or place).location,
                fix=f"{_PREFIX}proxy-body-size: 64m",
                evidence=(("bytes", size),),
            )


def _ingresses(subject: SourceSubject) -> Iterator[tuple[YamlValue, YamlValue]]:
    """Annotations of each Ingress of nginx, and the Ingress."""
    pods = [one.pod for one in subject.deployed.instances if one.pod]
    names = {(s.namespace, s.name) for pod in pods for s in pod.services}
    for one in subject.deployed.of_kind("Ingress"):
        spec, notes = one.view.at("spec"), one.view.at("metadata", "annotations")
        kind = spec.at("ingressClassName").string() or notes.at(_CLASS).string()
        paths = [p for host in spec.at("rules").items() for p in host.at("http", "paths").items()]
        backends = [path.at("backend") for path in paths] + [spec.at("defaultBackend")]
        behind = {(one.namespace, each.at("service", "name").string()) for each in backends}
        if kind == "nginx" and behind & names:
            yield notes, spec
    router = part(subject.deployed, "routerSpec")
    ingress = router.at("ingress") if router is not None else None
    if ingress is not None and ingress.at("enabled").value is True:
        notes = ingress.at("annotations")
        if "nginx" in (ingress.at("className").string(), notes.at(_CLASS).string()):
            yield notes, ingress
