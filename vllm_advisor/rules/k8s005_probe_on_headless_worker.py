"""A probe asks a headless worker, which serves nothing.

## What it checks
Probes over HTTP, TCP or gRPC, and healthchecks, of a container whose server has `--headless`, or
the variable HEADLESS that wrappers turn into it.

## Why it matters
A headless worker opens no HTTP port. A startup or liveness probe kills it for ever, a readiness
probe never lets it be ready, a healthcheck calls it unhealthy.

## Bad
```yaml
services:
  worker:
    image: vllm/vllm-openai:v0.33.0
    command: Qwen/Qwen2.5-14B-Instruct -tp 2 --nnodes 2 --node-rank 1 --headless
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
    healthcheck:
      test: ["CMD", "curl", "-f", "http://127.0.0.1:8000/health"]
      start_period: 900s
```

## Good
```yaml
services:
  worker:
    image: vllm/vllm-openai:v0.33.0
    command: Qwen/Qwen2.5-14B-Instruct -tp 2 --nnodes 2 --node-rank 1 --headless
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
    healthcheck: {disable: true}
```

## Fix
Leave the probe out of workers; the leader's says whether the whole replica answers.

## References
- https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/pull/112
- vllm:0.33.0:vllm/entrypoints/cli/serve.py#run_headless
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import container_of
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_ASKS = ("httpGet", "tcpSocket", "grpc", "exec curl", "exec wget", "curl", "wget")
_YES = ("1", "true", "yes")


@rule(id="K8S005", name="probe-on-headless-worker", severity=Severity.ERROR, flags=("headless",))
def check(subject: Subject) -> Iterator[Fault]:
    """Report each probe that needs a port."""
    container = container_of(subject)
    if container is None:
        return
    variable = container.variable("HEADLESS")
    by_variable = variable is not None and (variable.value or "").lower() in _YES
    if not subject.args.get("headless") and not by_variable:
        return
    for probe in (
        container.startup,
        container.liveness,
        container.readiness,
        container.healthcheck,
    ):
        if probe is None or not probe.handler.startswith(_ASKS):
            continue
        healthcheck = probe.kind == "healthcheck"
        yield Fault(
            message=f"the {probe.kind}{'' if healthcheck else ' probe'} asks a headless worker, "
            "which opens no port",
            location=probe.location,
            fix="healthcheck: {disable: true} on workers, and keep it on the leader"
            if healthcheck
            else f"leave {probe.kind}Probe out of the worker's template",
        )
