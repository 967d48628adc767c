"""The server's container may do anything on its node.

## What it checks
`privileged: true`, and the capabilities `ALL` and `SYS_ADMIN`.

## Why it matters
Whoever takes over the server has the node. vLLM needs none of it: GPUs come from the device plugin
or the container toolkit.

## Bad
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    privileged: true
```

## Good
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["Qwen/Qwen3-8B"]
    cap_drop: [ALL]
```

## Fix
Leave it out; for RDMA add `IPC_LOCK` alone.

## References
- https://kubernetes.io/docs/concepts/security/pod-security-standards/
- https://docs.docker.com/engine/containers/run/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_TOO_MUCH = ("ALL", "SYS_ADMIN")


@rule(id="SEC010", name="privileged-container", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the container's rights."""
    container = subject.instance.container if subject.instance else None
    if container is None:
        return
    security = container.security
    if security.privileged is not None and security.privileged.value:
        yield Fault(
            message="the container is privileged, and vLLM does not need that",
            location=security.privileged.location,
            fix="leave privileged out; for RDMA add the capability IPC_LOCK",
        )
    for one in security.capabilities_added:
        if one.value.upper().removeprefix("CAP_") in _TOO_MUCH:
            yield Fault(
                message=f"the container has the capability {one.value}, and vLLM does not need it",
                location=one.location,
                fix="leave it out; for RDMA add IPC_LOCK",
                evidence=(("capability", one.value),),
            )
