"""The image has no tag that stays the same.

## What it checks
Images of vLLM, and of whatever runs it, with the tag latest, nightly or none, and without a
digest.

## Why it matters
Each pull may bring another release. Flags are removed, defaults change, and a node that pulls later
runs another version than its neighbour; nothing says to which version to go back.

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:latest
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
A tag with a version, at best with its digest.

## References
- https://kubernetes.io/docs/concepts/containers/images/#image-names
- https://hub.docker.com/r/vllm/vllm-openai/tags
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_MOVING = ("latest", "nightly", "main", "edge")


@rule(id="K8S029", name="tag-latest", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the tag."""
    container = container_of(subject)
    image = container.image if container else None
    if image is None or image.digest or "$" in image.text or not image.repository:
        return
    if image.tag and image.tag.partition("-")[0] not in _MOVING:
        return
    says = f"the tag {image.tag} moves" if image.tag else "without a tag it is latest, which moves"
    yield Fault(
        message=f"{image.text}: {says} with each release",
        location=image.location,
        fix=f"{image.repository}:v{subject.engine.version}, or the version you have tested",
    )
