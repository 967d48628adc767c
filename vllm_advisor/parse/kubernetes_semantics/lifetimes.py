"""Times that have to fit into each other: start-up and rollout, shutdown and grace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    Object,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    listed,
    mapping,
    words,
)

# Kubernetes' defaults, in seconds.
GRACE = 30
PROGRESS = 600
PROBE = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3}
_SLEEP = re.compile(r"\bsleep\s+([0-9]+)")


def startup(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """A Deployment that gives up on its pods before their start-up probes do."""
    if kind_of(one) != "Deployment":
        return
    deadline = mapping(one, "spec").get("progressDeadlineSeconds", PROGRESS)
    for pod in bundle.pods:
        if pod.owner is not one:
            continue
        for path, container in entries(pod.spec, "containers", prefix=f"{pod.path}.spec."):
            if "startupProbe" not in container:
                continue
            budget = _budget(mapping(container, "startupProbe"))
            if isinstance(deadline, int) and budget > deadline:
                message = f"allows {budget} s, progressDeadlineSeconds only {deadline} s"
                yield Remark("startup-beyond-deadline", f"{path}.startupProbe", message)


def _budget(probe: Mapping[str, Any]) -> int:
    delay, period, failures = (
        value if isinstance(value := probe.get(key, default), int) else default
        for key, default in PROBE.items()
    )
    return delay + period * failures


def termination(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Grace that ends before the preStop hook and vLLM's own shutdown do."""
    if pod.partial and "terminationGracePeriodSeconds" not in pod.spec:
        return
    grace = pod.spec.get("terminationGracePeriodSeconds", GRACE)
    for path, container in pod.containers():
        hook = _seconds_of_hook(mapping(container, "lifecycle", "preStop"))
        shutdown = _shutdown_timeout([word for _, word in words(container)])
        if isinstance(grace, int) and hook + shutdown > grace:
            message = (
                f"preStop {hook} s and --shutdown-timeout {shutdown} s do not fit into "
                f"terminationGracePeriodSeconds {grace}"
            )
            yield Remark("shutdown-beyond-grace", path, message)


def _seconds_of_hook(hook: Mapping[str, Any]) -> int:
    """How long a preStop hook waits, where it is a sleep."""
    asked = mapping(hook, "sleep").get("seconds")
    if isinstance(asked, int):
        return asked
    match = _SLEEP.search(" ".join(map(str, listed(mapping(hook, "exec"), "command"))))
    return int(match[1]) if match else 0


def _shutdown_timeout(said: list[str]) -> int:
    """``--shutdown-timeout``, in seconds; vLLM's default is 0."""
    text = " ".join(said).replace("--shutdown_timeout", "--shutdown-timeout")
    match = re.search(r"--shutdown-timeout[= ]([0-9]+)\b", text)
    return int(match[1]) if match else 0
