"""The accepted objects of tests/data/kubernetes, and how to break one thing in them."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[1] / "data"
BUNDLE = DATA / "kubernetes" / "bundle.yaml"
CUSTOM = DATA / "kubernetes" / "custom.yaml"
ABSENT = object()


def objects(path: Path = BUNDLE) -> list[dict[str, Any]]:
    return copy.deepcopy(parsed(path))


@cache
def parsed(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def broken(kind: str, path: str, value: Any, source: Path = BUNDLE) -> list[dict[str, Any]]:
    """The bundle with the value at ``a.b.0.c`` of its object of a kind set, or taken away."""
    found = objects(source)
    (node,) = (one for one in found if one["kind"] == kind)
    *way, last = [int(key) if key.isdigit() else key.replace("~", ".") for key in path.split(".")]
    for key in way:
        node = node[key]
    if value is ABSENT:
        del node[last]
    elif isinstance(node, list) and last == len(node):
        node.append(value)
    else:
        node[last] = value
    return found
