"""A fraction of a GPU is asked for.

## What it checks
`requestGPU` of production-stack's values.

## Why it matters
Device plugins hand out whole pieces, and the API server refuses anything else.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      requestGPU: 0.5
      vllmConfig:
        enablePrefixCaching: true
```

## Good
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

## Fix
Ask for whole GPUs. To share one, set up MIG or time slicing on the node and name that resource in
`requestGPUType`.

## References
- https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
- https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.kubernetes.containers import quantity_at
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import KIND
from vllm_advisor.types.finding import Severity


@source_rule(id="HLM010", name="gpu-request-fraction", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at every model's request, and at the head of a Ray cluster."""
    if subject.deployed.kind != KIND:
        return
    for one in subject.deployed.of_kind("modelSpec"):
        for view in (one.view, one.view.at("raySpec", "headNode")):
            setting = view.at("requestGPU")
            number = quantity_at(setting)
            if number is None or number.value.denominator == 1:
                continue
            kind = view.at("requestGPUType").string() or "nvidia.com/gpu"
            yield Fault(
                message=f"requestGPU {setting.string()}: {kind} comes in whole pieces only",
                location=setting.location,
                fix="requestGPU: 1, with MIG or time slicing on the node and its resource in "
                "requestGPUType to share a GPU",
            )
