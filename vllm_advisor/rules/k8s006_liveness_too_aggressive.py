"""A liveness probe kills a server that is only busy.

## What it checks
Liveness probes with failureThreshold 1, or whose failures are over within less than 10 seconds.

## Why it matters
One slow answer under load, or one lost packet, restarts the server: every running request and
minutes of loading are lost, and the other replicas get its load on top of theirs.

## Bad
```yaml
livenessProbe:
  httpGet: {path: /health, port: 8000}
  initialDelaySeconds: 600
  periodSeconds: 5
  failureThreshold: 1
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
livenessProbe:
  httpGet: {path: /health, port: 8000}
  initialDelaySeconds: 600
  periodSeconds: 10
  failureThreshold: 3
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
`failureThreshold: 3` or more with `periodSeconds: 10`; let readiness react fast instead.

## References
- https://github.com/ai-dynamo/dynamo/pull/2124
- https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_PERIOD, _FAILURES = 10, 3  # Kubernetes' defaults
_LEAST = 10  # seconds


@rule(id="K8S006", name="liveness-too-aggressive", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Count the failures and the seconds until the kill."""
    container = container_of(subject)
    probe = container.liveness if container else None
    if probe is None:
        return
    failures = probe.failures.value if probe.failures else _FAILURES
    period = probe.period.value if probe.period else _PERIOD
    if failures > 1 and period * failures >= _LEAST:
        return
    place = probe.failures or probe.period
    calls = "one failed call" if failures == 1 else f"{failures} failed calls"
    yield Fault(
        message=f"{calls} within {period * failures} s restart the server",
        location=place.location if place else probe.location,
        fix="failureThreshold: 3 with periodSeconds: 10",
        evidence=(("failure_threshold", failures), ("period_seconds", period)),
    )
