"""The objects of a manifest, and the pods in them, of any kind: a pod spec is known by its look.

A pod spec is a mapping with a list of ``containers``. That holds for every workload of Kubernetes
itself and for custom resources (LeaderWorkerSet, LLMInferenceService, RayCluster, ...). What people
paste without ``kind`` is read as a pod spec, a container, a list of containers or its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue

LLM_SERVICE = "LLMInferenceService"  # of KServe
_NO_PODS = frozenset(("CustomResourceDefinition", "ConfigMap", "Secret", "Kustomization"))
_ROLES = {
    "leaderTemplate": "leader",
    "workerTemplate": "worker",
    "worker": "worker",
    "prefill": "prefill",
    "decode": "decode",
    "headGroupSpec": "leader",
    "workerGroupSpecs": "worker",
    "workerSpec": "worker",
}
CONTAINER_KEYS = frozenset((
    "args", "command", "env", "envFrom", "image", "lifecycle", "livenessProbe", "ports",
    "readinessProbe", "resources", "securityContext", "startupProbe", "volumeMounts",
))  # fmt: skip
POD_KEYS = frozenset((
    "affinity", "containers", "hostIPC", "hostNetwork", "initContainers", "nodeSelector",
    "runtimeClassName", "terminationGracePeriodSeconds", "tolerations", "volumes",
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSource:
    """A pod spec in an object.

    ``containers`` are its containers; for a fragment that is one container without a pod, the
    fragment itself. ``template`` holds ``metadata`` beside the spec, where there is any.
    """

    owner: DeployedObject
    spec: YamlValue
    template: YamlValue
    containers: tuple[YamlValue, ...]
    role: str = ""
    fragment: bool = False


def objects_in(document: YamlDocument) -> Iterator[DeployedObject]:
    """The objects of a document: itself, or the items of a List."""
    root = document.root
    if root.at("kind").string().endswith("List") and isinstance(root.at("items").value, list):
        yield from objects_in_list(root.at("items"))
    else:
        yield _object(root)


def objects_in_list(items: YamlValue) -> Iterator[DeployedObject]:
    """The objects that are the items of a list."""
    return (_object(item) for item in items.items() if item.mapping())


def pods_in(one: DeployedObject) -> list[PodSource]:
    """The pods that an object makes, or the fragment that it is."""
    if one.kind in _NO_PODS:
        return []
    found = list(_pod_specs(one, one.view, one.view, ""))
    if found:
        return found
    if one.kind == LLM_SERVICE:  # its preset has the container
        spec = one.view.at("spec")
        template = spec.at("template")
        return [PodSource(owner=one, spec=template, template=template, containers=(template,))]
    return [] if one.kind else _fragment(one)


def _object(view: YamlValue) -> DeployedObject:
    metadata = view.at("metadata")
    return DeployedObject(
        kind=view.at("kind").string(),
        name=metadata.at("name").string(),
        namespace=metadata.at("namespace").string(),
        view=view,
    )


def _pod_specs(
    owner: DeployedObject, view: YamlValue, parent: YamlValue, role: str
) -> Iterator[PodSource]:
    """Pod specs below a value; ``parent`` is what holds the value."""
    if isinstance(view.value, list):
        for item in view.items():
            yield from _pod_specs(owner, item, view, role)
        return
    if not isinstance(view.value, dict):
        return
    containers = view.at("containers")
    if isinstance(containers.value, list) and any(isinstance(c, dict) for c in containers.value):
        own = tuple(c for c in containers.items() if isinstance(c.value, dict))
        template = parent if view.key == "spec" else view
        yield PodSource(
            owner=owner,
            spec=view,
            template=template,
            containers=own,
            role=role,
            fragment=not owner.kind,
        )
        return
    for entry in view.entries():
        if isinstance(entry.value, dict | list):
            below = _ROLES.get(entry.key, role)
            yield from _pod_specs(owner, entry, view, below)


def _fragment(one: DeployedObject) -> list[PodSource]:
    """A container, containers, or arguments without anything around them."""
    view = one.view
    if isinstance(view.value, list):
        mappings = [item for item in view.items() if isinstance(item.value, Mapping)]
        containers = [item for item in mappings if CONTAINER_KEYS & item.value.keys()]
        if not containers and mappings:
            return []
        return [
            PodSource(owner=one, spec=each, template=each, containers=(each,), fragment=True)
            for each in (containers or [view])
        ]
    keys = view.mapping().keys()
    if not keys & (CONTAINER_KEYS | POD_KEYS):
        return []
    return [PodSource(owner=one, spec=view, template=view, containers=(view,), fragment=True)]
