"""The GPUs that a pod asks for: how many, of which product, on how many nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from vllm_advisor.parse.container import Container
from vllm_advisor.parse.deployed import DeployedObject, Selection
from vllm_advisor.parse.kubernetes.objects import PodSource
from vllm_advisor.parse.kubernetes_semantics.bundle import namespace
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.types.decision import Location

# Labels of nodes whose value names a GPU.
_PRODUCT_LABELS = frozenset((
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class", "gpu.nvidia.com/model",
    "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator", "accelerator",
))  # fmt: skip
_CEL_PRODUCT = re.compile(r"productName\s*==\s*(['\"])(?P<name>(?:(?!\1)[^\\]|\\.)*)\1")
_DRA = "serving.kserve.io/exp-dra-"


class Hardware(NamedTuple):
    """GPUs of one pod; None and empty where the manifest does not say."""

    gpus: Placed[int] | None
    names: tuple[Placed[str], ...]


def hardware_of(
    pod: PodSource,
    container: Container,
    selections: tuple[Selection, ...],
    objects: tuple[DeployedObject, ...],
) -> Hardware:
    """What a pod asks for by resources, node labels and device claims."""
    names = [*labelled(selections)]
    gpus = container.resources.gpus
    for request in _device_requests(pod, container, objects):
        count = request.at("count").placed_integer()
        gpus = gpus or count or Placed(1, request.location)
        for selector in request.at("selectors").items():
            names += _products(selector.at("cel", "expression"))
    annotations = pod.owner.view.at("metadata", "annotations")
    gpus = gpus or annotations.at(f"{_DRA}device-count").placed_integer()
    names += _products(annotations.at(f"{_DRA}cel-selector"))
    return Hardware(gpus, tuple(names))


def labelled(selections: tuple[Selection, ...]) -> tuple[Placed[str], ...]:
    """The GPUs that the conditions on a node's labels allow."""
    return tuple(
        Placed(value, one.location)
        for one in selections
        if one.label in _PRODUCT_LABELS and one.required and one.operator == "In"
        for value in one.values
    )


def _device_requests(
    pod: PodSource, container: Container, objects: tuple[DeployedObject, ...]
) -> Iterator[YamlValue]:
    """The requests for devices behind the resource claims that the container uses."""
    used = {claim.value for claim in container.resources.claims}
    for claim in pod.spec.at("resourceClaims").items():
        if claim.at("name").string() not in used:
            continue
        template = claim.at("resourceClaimTemplateName").string()
        name = template or claim.at("resourceClaimName").string()
        kind = "ResourceClaimTemplate" if template else "ResourceClaim"
        for one in objects:
            same = namespace(one.data) == namespace(pod.owner.data)
            if one.kind == kind and one.name == name and same:
                spec = one.view.at("spec", "spec") if template else one.view.at("spec")
                for request in spec.at("devices", "requests").items():
                    yield request.at("exactly") or request


def _products(expression: YamlValue) -> list[Placed[str]]:
    place: Location = expression.location
    return [
        Placed(re.sub(r"\\(.)", r"\1", match["name"]), place)
        for match in _CEL_PRODUCT.finditer(expression.string())
    ]
