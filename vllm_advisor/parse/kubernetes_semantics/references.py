"""Names of other objects that are not in the bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    Object,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    mapping,
    namespace,
)

# Where a kind names one other object, and of what kind it is if the reference does not say.
NAMED = {
    "ScaledObject": ("spec.scaleTargetRef", "Deployment"),
    "HorizontalPodAutoscaler": ("spec.scaleTargetRef", ""),
    "InferenceObjective": ("spec.poolRef", "InferencePool"),
    "InferencePool": ("spec.endpointPickerRef", "Service"),
}
KEYS = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}


def pod_references(pod: PodTemplate, bundle: Bundle) -> Iterator[Remark]:
    """Claims, ConfigMaps, a service account and device claims that pods need."""
    account = pod.spec.get("serviceAccountName")
    if account and account != "default":
        path = f"{pod.spec_path}serviceAccountName"
        yield from _missing(bundle, pod, "ServiceAccount", account, path)
    for path, volume in entries(pod.spec, "volumes", prefix=pod.spec_path):
        yield from _volume(bundle, pod, volume, path)
    for path, container in pod.containers():
        yield from _variables(bundle, pod, container, path)
        device_claims = [one.get("name") for _, one in entries(pod.spec, "resourceClaims")]
        resources = mapping(container, "resources")
        for at, claim in entries(resources, "claims", prefix=f"{path}.resources."):
            if claim.get("name") not in device_claims:
                message = f"the pod has no resourceClaim {claim.get('name')!r}"
                yield Remark("reference-missing", f"{at}.name", message)
    for path, claim in entries(pod.spec, "resourceClaims", prefix=pod.spec_path):
        template = claim.get("resourceClaimTemplateName")
        if template:
            at = f"{path}.resourceClaimTemplateName"
            yield from _missing(bundle, pod, "ResourceClaimTemplate", template, at)


def _volume(
    bundle: Bundle, pod: PodTemplate, volume: Mapping[str, Any], path: str
) -> Iterator[Remark]:
    claim = mapping(volume, "persistentVolumeClaim").get("claimName")
    if claim:
        at = f"{path}.persistentVolumeClaim.claimName"
        yield from _missing(bundle, pod, "PersistentVolumeClaim", claim, at)
    projected = entries(mapping(volume, "projected"), "sources", prefix=f"{path}.projected.")
    for at, source in [(path, volume), *projected]:
        wanted = mapping(source, "configMap")
        keys = [item.get("key") for _, item in entries(wanted, "items")]
        yield from _keys(bundle, pod, "ConfigMap", wanted, keys, path=f"{at}.configMap")


def _variables(
    bundle: Bundle, pod: PodTemplate, container: Mapping[str, Any], path: str
) -> Iterator[Remark]:
    for at, source in entries(container, "envFrom", prefix=f"{path}."):
        wanted = mapping(source, "configMapRef")
        yield from _keys(bundle, pod, "ConfigMap", wanted, [], path=f"{at}.configMapRef")
    for at, one in entries(container, "env", prefix=f"{path}."):
        for kind, word in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
            wanted = mapping(one, "valueFrom", word)
            where = f"{at}.valueFrom.{word}"
            yield from _keys(bundle, pod, kind, wanted, [wanted.get("key")], path=where)


def _keys(
    bundle: Bundle,
    pod: PodTemplate,
    kind: str,
    wanted: Mapping[str, Any],
    keys: list[Any],
    *,
    path: str,
) -> Iterator[Remark]:
    """A ConfigMap that is not there, or that has not these keys; of Secrets the keys only."""
    name = wanted.get("name")
    if not name or wanted.get("optional"):
        return
    holder = bundle.find(kind, name, pod.namespace)
    if holder is None:
        if kind != "Secret":
            yield from _missing(bundle, pod, kind, name, f"{path}.name")
        return
    there = [key for part in KEYS[kind] for key in mapping(holder, part)]
    for key in keys:
        if key not in there:
            yield Remark("reference-missing", path, f"{kind} {name} has no key {key!r}")


def _missing(bundle: Bundle, pod: PodTemplate, kind: str, name: Any, path: str) -> Iterator[Remark]:
    if not bundle.has(kind, name, pod.namespace):
        yield Remark("reference-missing", path, f"no {kind} {name} in the bundle")


def object_references(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """What autoscalers, routes, pools and objectives point at."""
    kind = kind_of(one)
    wanted: list[tuple[str, Mapping[str, Any], str]] = []
    if kind in NAMED:
        path, default = NAMED[kind]
        wanted.append((path, mapping(one, *path.split(".")), default))
    if kind in ("HTTPRoute", "GRPCRoute"):
        spec = mapping(one, "spec")
        for at, rule in entries(spec, "rules", prefix="spec."):
            for path, backend in entries(rule, "backendRefs", prefix=f"{at}."):
                wanted.append((path, backend, "Service"))
        for path, parent in entries(spec, "parentRefs", prefix="spec."):
            wanted.append((path, parent, "Gateway"))
    for path, reference, default in wanted:
        target = str(reference.get("kind") or default)
        where = str(reference.get("namespace") or namespace(one))
        if reference and not bundle.has(target, reference.get("name"), where):
            message = f"no {target} {reference.get('name')} in the bundle"
            yield Remark("reference-missing", f"{path}.name", message)
