"""production-stack's router can be reached from outside and asks for no API key.

## What it checks
A `serviceType` of LoadBalancer or NodePort, an Ingress or a route of `routerSpec`, without
`vllmApiKey` of the router or the engines.

## Why it matters
Whoever reaches the router uses the GPUs.

## Bad
```yaml
routerSpec:
  serviceType: LoadBalancer
```

## Good
```yaml
servingEngineSpec:
  vllmApiKey: {secretName: vllm-api-key, secretKey: VLLM_API_KEY}
routerSpec:
  serviceType: LoadBalancer
```

## Fix
`servingEngineSpec.vllmApiKey: {secretName: NAME, secretKey: KEY}`, or `serviceType: ClusterIP` and
no Ingress.

## References
- https://github.com/vllm-project/production-stack/blob/main/helm/values.yaml
- https://docs.vllm.ai/en/latest/usage/security/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import part
from vllm_advisor.types.finding import Severity


@source_rule(id="HLM011", name="router-without-key", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look for ways to the router, and for a key."""
    router = part(subject.deployed, "routerSpec")
    if router is None or router.at("enableRouter").value is False:
        return
    engines = part(subject.deployed, "servingEngineSpec")
    if router.at("vllmApiKey").value or (engines is not None and engines.at("vllmApiKey").value):
        return
    for way in _ways(router):
        yield Fault(
            message="the router can be reached from outside, and neither it nor the engines ask "
            "for an API key",
            location=way.location,
            fix="servingEngineSpec.vllmApiKey: {secretName: NAME, secretKey: VLLM_API_KEY}",
        )


def _ways(router: YamlValue) -> Iterator[YamlValue]:
    if router.at("serviceType").string() in ("LoadBalancer", "NodePort"):
        yield router.at("serviceType")
    ingress = router.at("ingress")
    authenticated = any("auth" in note.key for note in ingress.at("annotations").entries())
    if ingress.at("enabled").value is True and not authenticated:
        yield ingress
    for route in router.at("route").entries():
        if route.at("enabled").value is True:
            yield route
