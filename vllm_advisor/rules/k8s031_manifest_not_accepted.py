"""An object that the API server refuses, or that does not do what it says.

## What it checks
Whole manifests (with apiVersion): names, labels, quantities, variables, mounts, and what objects of
the source say of each other: selectors, ports, keys of ConfigMaps. What only may be a mistake is a
warning: ports that nobody declares, `$(NAME)` that nothing defines, volumes in memory above the
memory limit, a startup probe that outlasts progressDeadlineSeconds. References to objects that are
not in the source are left alone.

## Why it matters
`kubectl apply` stops at the first object that is refused, with the others half applied; the rest
shows only when pods do not start or get no traffic.

## Bad
```yaml
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {app: chat}}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    env: [{name: VLLM_LOGGING_LEVEL, value: 1}]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Good
```yaml
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {app: chat}}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: ["--model", "Qwen/Qwen3-8B"]
    env: [{name: VLLM_LOGGING_LEVEL, value: "1"}]
    resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
Each finding says what is wanted.

## References
- https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
- https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.kubernetes_semantics import manifest_problems
from vllm_advisor.parse.kubernetes_semantics.bundle import ManifestProblem, identity
from vllm_advisor.parse.kubernetes_semantics.selectors import OWN
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity

# Those of rules of their own, and what may well be somewhere else.
_OTHERS = frozenset((
    "claim-shared", "reference-missing", "service-link-taken-as-setting", "shutdown-beyond-grace",
))  # fmt: skip
_MAYBE = frozenset((
    "memory-volume-above-limit", "port-not-declared", "startup-beyond-deadline",
    "variable-not-defined",
))  # fmt: skip
_FIXES = {
    "label-not-valid": "letters, digits, - _ and . only, 63 characters at most",
    "memory-volume-above-limit": "a higher memory limit, or a smaller sizeLimit",
    "name-not-valid": "lower-case letters, digits and -, 63 characters at most",
    "name-repeated": "another name",
    "port-not-declared": "the name of a port of the container, or declare it there",
    "port-number-not-declared": "a containerPort of that number, or the right number",
    "quantity-not-valid": "a quantity such as 16Gi, 500m or 4",
    "request-above-limit": "a request up to the limit",
    "request-not-equal-to-limit": "the same number in resources.limits",
    "selector-without-pods": "the labels of the pod template",
    "startup-beyond-deadline": "progressDeadlineSeconds above the startup probe's seconds",
    "variable-not-defined": "define the variable before, or write $$(NAME) for the text itself",
    "variable-not-valid": "a name, and a value in quotes",
    "volume-not-there": "a volume of that name in the pod's volumes",
}


@source_rule(id="K8S031", name="manifest-not-accepted", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Turn what the objects' own rules say into findings."""
    objects = [one for one in subject.deployed.objects if one.data.get("apiVersion") and one.name]
    if subject.deployed.kind != "kubernetes" or not objects:
        return
    named = {identity(one.data): one for one in reversed(objects)}
    for problem in manifest_problems([one.data for one in objects]):
        one = named[problem.object]
        severity = _severity(problem, one.kind)
        if severity is not None:
            yield Fault(
                message=f"{one.identity}: {problem.message}",
                location=one.where_path(problem.path),
                fix=_FIXES.get(problem.code, f"correct {problem.path or 'the object'}"),
                evidence=(("problem", problem.code), ("path", problem.path)),
                severity=severity,
            )


def _severity(problem: ManifestProblem, kind: str) -> Severity | None:
    """How bad a problem is; None for one that is not this rule's."""
    code = problem.code
    gpu = "nvidia.com/" in problem.path or "amd.com/" in problem.path  # K8S010's
    if code in _OTHERS or (code.startswith(("quantity", "request")) and gpu):
        return None
    if code == "port-number-not-declared":
        return Severity.INFO
    if code in _MAYBE or (code == "selector-without-pods" and kind not in OWN):
        return Severity.WARNING
    return Severity.ERROR
