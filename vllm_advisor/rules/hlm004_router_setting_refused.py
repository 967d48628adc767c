"""The router does not start with a setting of the values.

## What it checks
`routerSpec.routingLogic`, `serviceDiscovery`, `k8sServiceDiscoveryType` and `serviceType` against
the values there are, `sessionKey` with `session`, and `staticBackends` with `static`.

## Why it matters
The chart hands them on unchecked. The router's parser refuses an unknown one and the pod restarts
for ever.

## Bad
```yaml
routerSpec:
  routingLogic: least-loaded
```

## Good
```yaml
routerSpec:
  routingLogic: session
  sessionKey: x-session-id
```

## Fix
Take one of the values that the finding lists. The router cannot route by length: that is for a
proxy in front.

## References
- https://github.com/vllm-project/production-stack/blob/main/helm/values.schema.json
- https://github.com/vllm-project/production-stack/blob/main/src/vllm_router/parsers/parser.py
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import part
from vllm_advisor.types.finding import Severity

_ALLOWED = {
    "routingLogic": (
        "roundrobin",
        "session",
        "prefixaware",
        "kvaware",
        "disaggregated_prefill",
        "disaggregated_prefill_orchestrated",
    ),
    "serviceDiscovery": ("k8s", "static"),
    "k8sServiceDiscoveryType": ("pod-ip", "service-name"),
    "serviceType": ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
}
_NEEDS = (
    ("routingLogic", "session", "sessionKey"),
    ("serviceDiscovery", "static", "staticBackends"),
)


@source_rule(id="HLM004", name="router-setting-refused", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Compare the router's settings with those there are."""
    router = part(subject.deployed, "routerSpec")
    if router is None or router.at("enableRouter").value is False:
        return
    for key, allowed in _ALLOWED.items():
        setting = router.at(key)
        if setting and setting.string() not in allowed:
            yield Fault(
                message=f"routerSpec.{key} {setting.string()} is none of {', '.join(allowed)}",
                location=setting.location,
                fix=f"{key}: {allowed[0]}, or another of them",
                evidence=((key, setting.string()),),
            )
    for key, value, needed in _NEEDS:
        setting = router.at(key)
        if setting.string() == value and not router.at(needed).value:
            yield Fault(
                message=f"{key} {value} needs {needed}",
                location=setting.location,
                fix=f"set routerSpec.{needed}",
            )
