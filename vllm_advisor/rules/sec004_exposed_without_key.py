"""A server without an API key can be reached from outside.

## What it checks
Servers without `--api-key` and `VLLM_API_KEY` that a LoadBalancer or NodePort Service, an Ingress
or HTTPRoute of every path, the node's own network, or a port of the host on all addresses exposes.
Source ranges, internal load balancers, a NetworkPolicy and authentication at the Ingress pass.

## Why it matters
Whoever reaches the port uses the GPUs.

## Bad
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    ports: ["8000:8000"]
```

## Good
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    ports: ["127.0.0.1:8000:8000"]
```

## Fix
Set `VLLM_API_KEY` from a Secret and expose `/v1` only, or do not expose the server.

## References
- https://docs.vllm.ai/en/latest/usage/security/
- https://docs.docker.com/engine/network/port-publishing/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.exposure import exposures, has_key
from vllm_advisor.rules.plain_text import secret_reference
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="SEC004", name="exposed-without-key", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for ways in to a server without a key."""
    ways = [] if has_key(subject) else exposures(subject)
    container = subject.instance.container if subject.instance else None
    if ways and container is not None and container.env_from:
        where = container.env_from[0]
        what = f"whether {where.value} sets VLLM_API_KEY is not known"
        raise UnknownFactError(what, where=str(where.location))
    for way in ways:
        yield Fault(
            message=f"{way.how} exposes the server, and it asks for no API key",
            location=way.location,
            fix=f"{secret_reference(subject, 'VLLM_API_KEY')}; and {way.fix}",
        )
