"""A probe asks a port on which the server does not listen.

## What it checks
Numbers of ports in probes against `--port`, which is 8000 where it is not given. Ports of other
containers of the pod are left alone, and so are names.

## Why it matters
Nothing answers there. The container is killed while it loads, or never becomes ready.

## Bad
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8080"]
resources: {limits: {nvidia.com/gpu: 1}}
startupProbe:
  httpGet: {path: /health, port: 8000}
  failureThreshold: 60
```

## Good
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8080"]
resources: {limits: {nvidia.com/gpu: 1}}
startupProbe:
  httpGet: {path: /health, port: 8080}
  failureThreshold: 60
```

## Fix
Give the probe the server's port.

## References
- vllm:0.33.0:vllm/entrypoints/common/cli_args.py#FrontendArgs
- https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import completed, container_of, kind_of_owner
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(
    id="K8S007",
    name="probe-port-not-of-server",
    severity=Severity.ERROR,
    flags=("port", "headless"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the numbers of ports."""
    container, instance = container_of(subject), subject.instance
    if container is None or instance is None or instance.pod is None or not _whole(subject):
        return
    if completed(subject) or subject.args.get("headless"):
        return
    listens = int(subject.args.get("port", subject.engine.flags["port"].default))
    others = {port.value for one in instance.pod.sidecars for port in one.ports}
    for probe in (container.startup, container.liveness, container.readiness):
        if probe is None or not probe.port.isdecimal():
            continue
        asked = int(probe.port)
        if asked not in {listens, *others}:
            yield Fault(
                message=f"the {probe.kind} probe asks port {asked}, and the server listens on "
                f"{listens}",
                location=probe.location,
                fix=f"port: {listens} in {probe.kind}Probe, or --port {asked}",
                evidence=(("probe_port", asked), ("port", listens)),
            )


def _whole(subject: Subject) -> bool:
    """Whether the command is all there, and its port not the chart's."""
    return bool(subject.command.model) and kind_of_owner(subject) != "modelSpec"
