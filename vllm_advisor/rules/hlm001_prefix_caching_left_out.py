"""production-stack's chart switches prefix caching off where the values do not switch it on.

## What it checks
Each `modelSpec` whose `vllmConfig` has no `enablePrefixCaching`, unless `extraArgs` have the flag.

## Why it matters
vLLM caches prefixes by default. The chart writes `--no-enable-prefix-caching` where the key is left
out, and every system prompt and document is then computed again for each request.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      vllmConfig:
        maxModelLen: 16384
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      vllmConfig:
        maxModelLen: 16384
        enablePrefixCaching: true
```

## Fix
`vllmConfig: {enablePrefixCaching: true}`.

## References
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.stack_values import prefix_caching_left_out
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.runner import Runner


@rule(
    id="HLM001",
    name="prefix-caching-left-out",
    severity=Severity.WARNING,
    flags=("enable_prefix_caching",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the key, and for the flag that comes after it."""
    left_out = prefix_caching_left_out(subject)
    if left_out is None:
        return
    if subject.model is not None and subject.model.runner is Runner.POOLING:
        return
    yield Fault(
        message="the chart writes --no-enable-prefix-caching where enablePrefixCaching is left "
        "out: prompts that begin alike are computed again for every request",
        location=left_out.location,
        fix="vllmConfig: {enablePrefixCaching: true}",
    )
