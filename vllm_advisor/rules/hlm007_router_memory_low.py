"""The router may be killed for its memory.

## What it checks
`routerSpec.resources.limits.memory` below 2 GiB.

## Why it matters
The router holds requests and answers, and was seen killed at 500Mi. Each time it takes every
running request with it.

## Bad
```yaml
routerSpec:
  resources:
    limits: {memory: 500Mi}
```

## Good
```yaml
routerSpec:
  resources:
    limits: {memory: 2Gi}
```

## Fix
`resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}`.

## References
- https://github.com/vllm-project/production-stack/issues/858
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.kubernetes.containers import quantity_at
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import part
from vllm_advisor.types.finding import Severity

_ENOUGH = 2 << 30


@source_rule(id="HLM007", name="router-memory-low", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Compare the limit with what a router was seen to need."""
    router = part(subject.deployed, "routerSpec")
    if router is None or router.at("enableRouter").value is False:
        return
    limit = router.at("resources", "limits", "memory")
    memory = quantity_at(limit)
    if memory is not None and memory.value < _ENOUGH:
        yield Fault(
            message=f"the router's memory limit of {limit.string()} was seen to be too small",
            location=limit.location,
            fix="routerSpec.resources.limits.memory: 2Gi",
            evidence=(("limit_bytes", int(memory.value)), ("enough_bytes", _ENOUGH)),
        )
