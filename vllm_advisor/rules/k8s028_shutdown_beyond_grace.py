"""The pod is killed before its last requests are done.

## What it checks
preStop hooks that sleep and `--shutdown-timeout` against terminationGracePeriodSeconds, which is 30
where it is not given, or stop_grace_period of Compose, which is 10.

## Why it matters
The grace includes the hook. When it ends the kubelet kills the container, with all the requests
that the server was waiting for.

## Bad
```yaml
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B", "--shutdown-timeout", "45"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: Pod
metadata: {name: server}
spec:
  terminationGracePeriodSeconds: 75
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B", "--shutdown-timeout", "45"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
A grace of preStop + shutdown timeout + 15 s, in which the processes end.

## References
- https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.rules.pods import completed, container_of, kind_of_owner, lone_container
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_DEFAULTS = {"compose": 10, "": 30}  # seconds
_EXIT = 15
_SLEEP = re.compile(r"\bsleep\s+(\d+)")


@rule(
    id="K8S028",
    name="shutdown-beyond-grace",
    severity=Severity.WARNING,
    flags=("shutdown_timeout",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Add up what comes before the kill."""
    container, instance = container_of(subject), subject.instance
    pod = instance.pod if instance else None
    if container is None or instance is None or pod is None or completed(subject):
        return
    grace = pod.termination_grace
    if grace is None and (lone_container(subject) or kind_of_owner(subject) == "modelSpec"):
        return
    seconds = grace.value if grace else _DEFAULTS["compose" if instance.kind == "compose" else ""]
    sleep = _SLEEP.search(container.pre_stop.value) if container.pre_stop else None
    hook, wait = int(sleep[1]) if sleep else 0, int(subject.args.get("shutdown_timeout", 0))
    if hook + wait <= seconds or hook + wait == 0:
        return
    key = "stop_grace_period" if instance.kind == "compose" else "terminationGracePeriodSeconds"
    place = grace.location if grace else subject.place("shutdown_timeout")
    yield Fault(
        message=f"preStop takes {hook} s and --shutdown-timeout {wait} s, and the grace is "
        f"{seconds} s",
        location=place,
        fix=f"{key}: {hook + wait + _EXIT}{'s' if instance.kind == 'compose' else ''}",
        evidence=(("pre_stop", hook), ("shutdown_timeout", wait), ("grace", seconds)),
    )
