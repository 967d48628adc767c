"""An update of the release needs as many spare GPUs as it uses.

## What it checks
`servingEngineSpec` with a model that asks for GPUs and without `strategy`.

## Why it matters
The chart's rollout is `maxSurge: 100%` and `maxUnavailable: 0`: all new pods have to run before an
old one stops. Without twice the GPUs the update waits until it times out.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 1
      vllmConfig:
        enablePrefixCaching: true
```

## Good
```yaml
servingEngineSpec:
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 1
      vllmConfig:
        enablePrefixCaching: true
```

## Fix
`servingEngineSpec.strategy` with `maxSurge: 0` and `maxUnavailable: 1`, or `type: Recreate`.

## References
- https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import KIND, part
from vllm_advisor.types.finding import Severity


@source_rule(id="HLM006", name="rollout-doubles-gpus", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look for a strategy, and count the GPUs."""
    deployed = subject.deployed
    gpus = 0
    for instance in deployed.instances:
        replicas = instance.pod.replicas if instance.pod else None
        each = instance.gpus.value if instance.gpus else 0
        gpus += each * (replicas.value if replicas else 1)
    if deployed.kind != KIND or not gpus:
        return
    engines = part(deployed, "servingEngineSpec")
    if engines is None:
        what = "how pods are replaced is not known: the values have no servingEngineSpec"
        raise UnknownFactError(what, where=deployed.file)
    if engines.at("strategy").value:
        return
    yield Fault(
        message=f"without strategy the chart starts every new pod before an old one stops: an "
        f"update needs {gpus} more GPU{'s' * (gpus > 1)}, or waits for ever",
        location=engines.location,
        fix="servingEngineSpec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, "
        "maxUnavailable: 1}}}",
        evidence=(("gpus", gpus),),
    )
