"""The chart picks an LMCache connector that this version of vLLM does not have.

## What it checks
`vllmConfig.v0: "1"` together with `lmcacheConfig.enabled`.

## Why it matters
The chart then writes `LMCacheConnector` and `VLLM_USE_V1=0`, both of the engine that vLLM has
dropped. The server stops at start-up.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      lmcacheConfig: {enabled: true}
      vllmConfig:
        enablePrefixCaching: true
        v0: "1"
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      lmcacheConfig: {enabled: true}
      vllmConfig:
        enablePrefixCaching: true
```

## Fix
Leave `v0` out: the chart then writes `LMCacheConnectorV1`.

## References
- https://github.com/vllm-project/production-stack/issues/407
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
- vllm:0.33.0:vllm/distributed/kv_transfer/kv_connector/factory.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.stack_values import model_spec
from vllm_advisor.types.finding import Severity

_FIRST_WITHOUT = (0, 11)  # has one engine only


@rule(id="HLM009", name="lmcache-connector-version", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the old engine's key beside LMCache."""
    spec = model_spec(subject)
    if spec is None or spec.at("lmcacheConfig", "enabled").value is not True:
        return
    old = spec.at("vllmConfig", "v0")
    if old.string() == "1" and _release(subject.engine.version) >= _FIRST_WITHOUT:
        yield Fault(
            message=f"v0: {old.string()} makes the chart pick LMCacheConnector and VLLM_USE_V1=0, "
            f"which vLLM {subject.engine.version} does not have",
            location=old.location,
            fix="leave vllmConfig.v0 out",
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
