"""A probe gives up on the server before it has loaded the model.

## What it checks
The seconds that the startup probe allows, or without one the liveness probe or the healthcheck,
against the time to start: the checkpoint read at 500 MiB/s, 300 s for imports, torch.compile,
warm-up and CUDA graphs, and where no volume keeps the weights a download at 100 MiB/s. Less than
that is a warning, and half or less of it without the download an error. Of an unknown model only
the 300 s are certain.

## Why it matters
The kubelet kills the container in the middle of loading and starts it anew, for ever. The log ends
in "KeyboardInterrupt: terminated". A Compose healthcheck kills nothing, but what depends on it
never starts.

## Bad
```yaml
containers:
- name: vllm
  image: vllm/vllm-openai:v0.33.0
  args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
  resources: {limits: {nvidia.com/gpu: 1}}
  livenessProbe:
    httpGet: {path: /health, port: 8000}
    initialDelaySeconds: 15
    periodSeconds: 10
    failureThreshold: 3
```

## Good
```yaml
containers:
- name: vllm
  image: vllm/vllm-openai:v0.33.0
  args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
  resources: {limits: {nvidia.com/gpu: 1}}
  startupProbe:
    httpGet: {path: /health, port: 8000}
    periodSeconds: 10
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /health, port: 8000}
    periodSeconds: 10
    failureThreshold: 3
```

## Fix
A startupProbe with periodSeconds x failureThreshold at least the time to start; it keeps the
liveness probe back until then. A volume for the weights saves the download.

## References
- https://github.com/vllm-project/vllm/issues/17386
- https://github.com/aws-samples/aws-do-eks/pull/40
- https://github.com/vllm-project/aibrix/issues/772
- https://github.com/kserve/kserve/pull/5063
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.container import Container, Probe
from vllm_advisor.rules.model_cache import covering, on_the_hub
from vllm_advisor.rules.pods import (
    checkpoint_bytes,
    completed,
    container_of,
    kind_of_owner,
    needs_of,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div, format_bytes

_PERIOD = {"healthcheck": 30}
_NO_GRAPHS = 60  # imports and loading alone, with --enforce-eager


@rule(
    id="K8S004",
    name="probe-budget-below-load-time",
    severity=Severity.ERROR,
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the budget of the probe that counts with the estimate."""
    container = container_of(subject)
    probe = None if container is None else _that_counts(container)
    if container is None or probe is None or subject.args.get("headless"):
        return
    if kind_of_owner(subject) == "modelSpec" and container.startup is None:
        return  # the chart has a startup probe of its own
    size = checkpoint_bytes(subject)
    loading = int(needs_of(subject, size or 0).startup.value)
    downloads = _downloads(subject, container)
    seconds = int(needs_of(subject, size or 0, downloads=downloads).startup.value)
    if probe.budget >= seconds:
        if size is None:
            reason = subject.why_missing("model")
            raise UnknownFactError(reason or "the size of the model is not known")
        return
    certain = _NO_GRAPHS if subject.args.get("enforce_eager") else loading // 2
    kills = probe.kind != "healthcheck" and probe.budget <= certain
    how = "" if size is None else f" for {format_bytes(size)} of weights"
    yield Fault(
        message=f"the {_name(probe)} gives up after {probe.budget} s, and a start is estimated to "
        f"take {seconds} s{how}",
        location=probe.location,
        fix=_fix(probe, seconds),
        evidence=(("budget_seconds", probe.budget), ("startup_seconds", seconds)),
        severity=None if kills else Severity.WARNING,
    )


def _that_counts(container: Container) -> Probe | None:
    """The probe that ends a start: liveness probes wait for a startup probe."""
    return container.startup or container.liveness or container.healthcheck


def _downloads(subject: Subject, container: Container) -> bool:
    """Whether each start downloads the weights."""
    kept = covering(subject, container)
    hub = on_the_hub(subject) and not completed(subject)
    return hub and (kept is None or kept.kind in ("emptyDir", "tmpfs"))


def _name(probe: Probe) -> str:
    return probe.kind if probe.kind == "healthcheck" else f"{probe.kind} probe"


def _fix(probe: Probe, seconds: int) -> str:
    period = probe.period.value if probe.period else _PERIOD.get(probe.kind, 10)
    if probe.kind == "healthcheck":
        return f"start_period: {seconds}s"
    failures = ceil_div(seconds, max(1, period))
    if probe.kind == "startup":
        return f"failureThreshold: {failures} with periodSeconds: {period}"
    return f"a startupProbe with periodSeconds: {period} and failureThreshold: {failures}"
