"""Kubernetes refuses a name that the chart makes of `modelSpec.name`.

## What it checks
The characters of `modelSpec[].name`, and its length with `-engine-service` behind it and a release
of at least one character in front.

## Why it matters
The name becomes part of a Service and of a host name, which have 63 characters at most, all of them
lower case letters, digits and dashes. The API server refuses the objects.

## Bad
```yaml
servingEngineSpec:
  modelSpec:
    - name: qwen3_8b
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
```

## Fix
Shorten the name, or write it with lower case letters, digits and dashes.

## References
- https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import KIND
from vllm_advisor.types.finding import Severity

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_LONGEST = 63 - len("r-") - len("-engine-service")  # with the shortest release there is


@source_rule(id="HLM005", name="name-refused", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at the names of all models."""
    if subject.deployed.kind != KIND:
        return
    for one in subject.deployed.of_kind("modelSpec"):
        place = one.where("name")
        if not one.name:
            continue
        if not _NAME.fullmatch(one.name):
            yield Fault(
                message=f"the name {one.name!r} becomes part of a Service's name, which has lower "
                "case letters, digits and dashes only",
                location=place,
                fix=f"name: {re.sub(r'[^a-z0-9]+', '-', one.name.lower()).strip('-') or 'model'}",
            )
        elif len(one.name) > _LONGEST:
            yield Fault(
                message=f"the name has {len(one.name)} characters: RELEASE-NAME-engine-service "
                "would be longer than the 63 that a Service may have",
                location=place,
                fix=f"a name of {_LONGEST} characters or fewer, less what the release has",
                evidence=(("characters", len(one.name)), ("most", _LONGEST)),
            )
