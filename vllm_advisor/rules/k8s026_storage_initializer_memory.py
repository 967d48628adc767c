"""KServe's storage initializer has too little memory for large models.

## What it checks
`kserve.storage.resources` of KServe's chart, and the memory limit of `storageInitializer` in the
ConfigMap inferenceservice-config, up to 1 GiB.

## Why it matters
An LLMInferenceService with an hf:// URI reads the ConfigMap, where the limit is 1Gi, and not the
value of the chart. Downloads of hf-xet take more (about 2 GiB for 7B, 16 GiB for 72B): the
initializer is OOMKilled.

## Bad
```yaml
kserve:
  storage:
    resources: {limits: {memory: 32Gi}}
```

## Good
```yaml
kind: ConfigMap
metadata: {name: inferenceservice-config}
data:
  storageInitializer: '{"memoryLimit": "16Gi"}'
```

## Fix
A higher memoryLimit in inferenceservice-config, or a pvc:// URI, which downloads nothing.

## References
- https://github.com/kserve/kserve/issues/5412
- https://github.com/kserve/kserve/issues/5162
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.kubernetes_semantics.resources import quantity
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import GIB


@source_rule(id="K8S026", name="storage-initializer-memory", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at both places of the limit."""
    for one in subject.deployed.objects:
        value = one.view.at("kserve", "storage", "resources", "limits", "memory")
        if value:
            yield Fault(
                message=f"{value.string()} for the storage initializer reaches only "
                "ClusterStorageContainer; an LLMInferenceService takes 1Gi of the ConfigMap",
                location=value.location,
                fix=f"memoryLimit: {value.string()} for storageInitializer in the ConfigMap "
                "inferenceservice-config, or a pvc:// URI",
            )
        if one.kind == "ConfigMap" and one.name == "inferenceservice-config":
            yield from _of_config(one)


def _of_config(one: DeployedObject) -> Iterator[Fault]:
    """The limit in KServe's own configuration, which is JSON in a ConfigMap."""
    view = one.view.at("data", "storageInitializer")
    try:
        config = json.loads(view.string() or "{}")
    except ValueError:
        return
    text = config.get("memoryLimit") if isinstance(config, dict) else None
    limit = quantity(text)
    if limit is not None and limit <= GIB:
        yield Fault(
            message=f"the storage initializer has {text} of memory; a model of 7B takes about 2Gi",
            location=view.location,
            fix='"memoryLimit": "16Gi"',
            evidence=(("limit_bytes", int(limit)),),
        )
