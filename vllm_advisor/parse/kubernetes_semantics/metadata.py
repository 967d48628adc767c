"""What every object has: a name of its kind, labels, and no twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    ManifestProblem,
    Object,
    Remark,
    identity,
    kind_of,
    mapping,
)
from vllm_advisor.parse.kubernetes_semantics.names import (
    label_error,
    label_key_error,
    label_value_error,
    subdomain_error,
)

# Kinds whose names become one part of a host name, with a letter first or not.
LETTER_FIRST = frozenset({"Service", "LeaderWorkerSet", "LLMInferenceService"})
LABELS = LETTER_FIRST | {"Namespace"}
# Kubernetes appends to the name and uses it as a label or host name: a CronJob's Jobs get 11
# characters more, a StatefulSet's revisions as many as 11.
LONGEST = {"CronJob": 52, "StatefulSet": 52, "Job": 63}
ANY_NAME = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
SELECTORS = frozenset({"matchLabels", "nodeSelector"})


def metadata(one: Object, _bundle: Bundle) -> Iterator[Remark]:
    """The name, by the grammar of the kind, and the namespace."""
    kind, about = kind_of(one), mapping(one, "metadata")
    name = about.get("name")
    if name is None:
        if "generateName" not in about:
            yield Remark("name-not-valid", "metadata.name", "there is none")
    elif error := _name_error(kind, name):
        yield Remark("name-not-valid", "metadata.name", f"{name!r}: {error}")
    if "namespace" in about and (error := label_error(about["namespace"])):
        yield Remark("name-not-valid", "metadata.namespace", f"{about['namespace']!r}: {error}")


def _name_error(kind: str, name: Any) -> str:
    if kind in ANY_NAME:
        return "" if isinstance(name, str) and not {"/", "%"} & {*name} else "may not have / or %"
    if kind in LABELS:
        return label_error(name, letter_first=kind in LETTER_FIRST)
    if error := subdomain_error(name):
        return error
    longest = LONGEST.get(kind, 253)
    return f"{len(name)} characters, at most {longest} for a {kind}" if len(name) > longest else ""


def labels(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """Keys and values of labels, keys of annotations, and what selects labels."""
    places: list[tuple[str, Mapping[str, Any]]] = [
        ("metadata.labels", mapping(one, "metadata", "labels"))
    ]
    places += [
        (f"{pod.path}.metadata.labels", pod.labels)
        for pod in bundle.pods
        if pod.owner is one and pod.path
    ]
    if kind_of(one) == "Service":
        places.append(("spec.selector", mapping(one, "spec", "selector")))
    if kind_of(one) != "CustomResourceDefinition":  # whose matchLabels is a schema
        places += _selectors(one.get("spec"), "spec")
    for path, found in places:
        for key, value in found.items():
            if error := label_key_error(key) or label_value_error(value):
                yield Remark("label-not-valid", f"{path}[{key}]", error)
    for key in mapping(one, "metadata", "annotations"):
        if error := label_key_error(key):
            yield Remark("label-not-valid", f"metadata.annotations[{key}]", error)


def _selectors(node: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every ``matchLabels`` and ``nodeSelector`` below a node, with its path."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in SELECTORS and isinstance(value, dict):
                yield f"{path}.{key}", value
            else:
                yield from _selectors(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _selectors(value, f"{path}[{index}]")


def repeated(bundle: Bundle) -> Iterator[ManifestProblem]:
    """Two objects of one kind and name: the second overwrites the first."""
    seen = set()
    for one in bundle.objects:
        key = (str(one.get("apiVersion")).partition("/")[0], identity(one))
        if key in seen and mapping(one, "metadata").get("name"):
            message = "another object has the same kind, namespace and name"
            yield Remark("name-repeated", "metadata.name", message).at(one)
        seen.add(key)
