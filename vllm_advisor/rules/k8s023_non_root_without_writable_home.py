"""A user that is not root has no folder to write to.

## What it checks
Containers with runAsNonRoot, or a runAsUser that is neither root nor the user the image is made
for, without HOME among their variables.

## Why it matters
HOME of a user that the image does not know is `/`. vLLM, Triton and torch write to /.config,
/.triton and /.cache, and the engine stops with "PermissionError: [Errno 13] Permission denied".

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
    securityContext: {runAsUser: 1000650000, runAsNonRoot: true}
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
    securityContext: {runAsUser: 1000650000, runAsNonRoot: true}
    env: [{name: HOME, value: /tmp}]
```

## Fix
`HOME` on a volume that the user may write to, an emptyDir or /tmp. HF_HOME, VLLM_CACHE_ROOT and
TRITON_CACHE_DIR follow it.

## References
- https://github.com/llm-d/llm-d/issues/1430
- https://github.com/vllm-project/vllm/issues/10185
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import completed, container_of, in_kubernetes
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

# With all of these set nothing is written to HOME.
_FOLDERS = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR")


@rule(id="K8S023", name="non-root-without-writable-home", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for a home of the user."""
    container = container_of(subject)
    if container is None or not in_kubernetes(subject) or completed(subject):
        return
    security = container.security
    user, non_root = security.run_as_user, security.run_as_non_root
    other = user is not None and user.value not in (0, subject.engine.image_uid)
    random = user is None and non_root is not None and non_root.value
    if not (other or random) or container.variable("HOME") is not None or container.env_from:
        return
    if all(container.variable(name) is not None for name in _FOLDERS):
        return
    who = f"the user {user.value}" if user is not None else "a user that is not root"
    place = user or non_root
    yield Fault(
        message=f"{who} has no home: vLLM and Triton write to /.config and /.triton, where only "
        "root may",
        location=place.location if place else security.location,
        fix="HOME=/tmp, or HOME on an emptyDir that is mounted",
    )
