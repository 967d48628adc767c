"""Kubernetes Node objects from a file of ``kubectl get node -o json`` or ``-o yaml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vllm_advisor.errors import InputError

_FIX = "write it with `kubectl get node NAME -o json > FILE`"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """What of a Node matters here; GPUs are the extended resource ``nvidia.com/gpu``."""

    name: str
    labels: Mapping[str, str]
    cordoned: bool
    gpu_capacity: int | None
    gpu_allocatable: int | None


def read_node_objects(path: Path) -> tuple[NodeObject, ...]:
    """The Node in the file, or the Nodes of its List.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the node labels ({error.strerror})", where=str(path), fix=_FIX
        ) from None
    document = _document(body, path)
    match document:
        case {"kind": "Node"}:
            items = [document]
        case {"kind": "List" | "NodeList", "items": list(items)}:
            pass
        case _:
            kind = document.get("kind") if isinstance(document, dict) else None
            found = f"a {kind}" if kind else "no Kubernetes object"
            raise InputError(f"the file holds {found}, not a Node", where=str(path), fix=_FIX)
    if not items or not all(isinstance(i, dict) and i.get("kind") == "Node" for i in items):
        raise InputError("the list holds no Nodes, or not only", where=str(path), fix=_FIX)
    return tuple(_node_object(item) for item in items)


def _document(body: bytes, path: Path) -> Any:
    """JSON or YAML; JSON is tried first, being many times faster to read."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.safe_load(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise InputError(
            f"neither JSON nor YAML ({getattr(error, 'problem', None) or error})",
            where=f"{path}{place}",
            fix=_FIX,
        ) from None


def _node_object(item: Mapping[str, Any]) -> NodeObject:
    labels = _part(item, "metadata", "labels")
    return NodeObject(
        name=str(_part(item, "metadata").get("name", "")),
        labels={str(k): str(v) for k, v in labels.items()},  # hand-written YAML has bare numbers
        cordoned=_part(item, "spec").get("unschedulable") is True,
        gpu_capacity=_gpus(item, "capacity"),
        gpu_allocatable=_gpus(item, "allocatable"),
    )


def _part(item: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The mapping under ``keys``, empty where there is none."""
    for key in keys:
        value = item.get(key)
        item = value if isinstance(value, dict) else {}
    return item


def _gpus(item: Mapping[str, Any], kind: str) -> int | None:
    """GPUs in ``capacity`` or ``allocatable``; shared GPUs may have a resource of their own."""
    resources = _part(item, "status", kind)
    counts = [str(resources.get(f"nvidia.com/{name}", "")) for name in ("gpu", "gpu.shared")]
    numbers = [int(text) for text in counts if text.isdecimal()]
    return sum(numbers) if numbers else None
