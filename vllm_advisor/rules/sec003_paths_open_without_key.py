"""Paths that the API key does not guard can be reached from outside.

## What it checks
Servers with an API key that a LoadBalancer or NodePort Service, an Ingress or HTTPRoute of every
path, the node's own network, or a port of the host on all addresses exposes.

## Why it matters
vLLM asks for the key below `/v1`, `/v2`, `/inference` and `/cohere` and nowhere else. Whoever
reaches `/invocations` gets completions without it; `/metrics`, `/tokenize` and `/version` are open
as well.

## Bad
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    environment: {VLLM_API_KEY: "${VLLM_API_KEY:?}"}
    ports: ["8000:8000"]
```

## Good
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    environment: {VLLM_API_KEY: "${VLLM_API_KEY:?}"}
    ports: ["127.0.0.1:8000:8000"]
```

## Fix
Let the way in forward `/v1` only: path `/v1` with `pathType: Prefix` in an Ingress, a proxy in
front of a published port, and a ClusterIP Service behind both.

## References
- vllm:0.32.0:vllm/entrypoints/serve/middleware/authenticate.py#GUARDED_PREFIX
- https://docs.vllm.ai/en/latest/usage/security/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.exposure import exposures, has_key
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="SEC003", name="paths-open-without-key", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for ways in to every path of a server with a key."""
    if not has_key(subject):
        return
    for way in exposures(subject):
        yield Fault(
            message=f"{way.how} exposes every path, and the API key guards /v1, /v2, /inference "
            "and /cohere only: /invocations answers without it, as do /metrics and /tokenize",
            location=way.location,
            fix=way.fix,
        )
