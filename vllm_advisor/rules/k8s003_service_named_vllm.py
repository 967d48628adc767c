"""A Service whose name makes variables that vLLM takes for its own settings.

## What it checks
Services in the namespace of a server whose pods have service links, as they have by default: one
called `vllm` (or `vllm-dp-master` and the like, which make another of vLLM's port variables) is
an error, any other `vllm-...` is mentioned.

## Why it matters
Kubernetes sets `VLLM_PORT=tcp://10.0.0.1:80` for a Service called vllm. vLLM reads VLLM_PORT as a
number and stops: "VLLM_PORT 'tcp://...' appears to be a URI". Other names are reported at start as
unknown variables, and refused with `--fail-on-environ-validation`.

## Bad
```yaml
kind: Service
metadata: {name: vllm}
spec: {selector: {app: vllm}, ports: [{port: 8000}]}
---
kind: Pod
metadata: {name: vllm, labels: {app: vllm}}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
kind: Service
metadata: {name: vllm}
spec: {selector: {app: vllm}, ports: [{port: 8000}]}
---
kind: Pod
metadata: {name: vllm, labels: {app: vllm}}
spec:
  enableServiceLinks: false
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["Qwen/Qwen3-8B"]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
`enableServiceLinks: false` in the pod's spec, or another name for the Service.

## References
- https://github.com/vllm-project/vllm/issues/34199
- vllm:0.33.0:vllm/envs.py#get_vllm_port
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.kubernetes_semantics.bundle import TEMPLATES
from vllm_advisor.parse.kubernetes_semantics.environment import PORT_VARIABLES
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity


@source_rule(id="K8S003", name="service-named-vllm", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at each Service beside pods that get its variables."""
    for service in subject.deployed.of_kind("Service"):
        name = service.name.upper().replace("-", "_")
        if not name.startswith("VLLM") or _headless(service):
            continue
        variable = f"{name}_PORT"
        taken = variable in PORT_VARIABLES
        if not taken and not name.startswith("VLLM_"):
            continue
        linked = [one for one in _linked(subject, variable) if _same_namespace(one, service)]
        if not linked:
            continue
        effect = (
            "which vLLM reads as a number: it does not start"
            if taken
            else (
                "which vLLM reports as an unknown variable, and refuses with "
                "--fail-on-environ-validation"
            )
        )
        yield Fault(
            message=f"the Service {service.name} sets {variable}=tcp://... in the pods of "
            f"{linked[0].identity}, {effect}",
            location=service.where("metadata", "name"),
            fix="enableServiceLinks: false in the pod's spec, or a name such as "
            f"{'llm' if service.name == 'vllm' else service.name.replace('vllm', 'llm', 1)}",
            evidence=(("variable", variable),),
            severity=None if taken else Severity.INFO,
        )


def _headless(service: DeployedObject) -> bool:
    """Whether a Service has no address of its own, and so makes no variables."""
    return service.view.at("spec", "clusterIP").string() == "None"


def _linked(subject: SourceSubject, variable: str) -> Iterator[DeployedObject]:
    """Owners of pods that get a Service's variable, and workloads whose pods are not written."""
    for each in subject.deployed.instances:
        pod = each.pod
        if pod is None or (pod.service_links is not None and not pod.service_links.value):
            continue
        if each.container is None or each.container.variable(variable) is None:
            yield pod.owner
    for one in subject.deployed.of_kind(*TEMPLATES):
        if "vllm" in one.name and not one.view.at("spec"):
            yield one


def _same_namespace(one: DeployedObject, other: DeployedObject) -> bool:
    return (one.namespace or "default") == (other.namespace or "default")
