"""Kubernetes' own schemas, strictly: unknown fields, types, enums, required fields.

Built-in kinds are held against kubernetes-validate's data for several minor versions, custom ones
against ``tests/data/crds`` (see ``tools/distil_crds.py``). Names, references between objects and
quantities are not looked at here: that is ``vllm_advisor.parse.kubernetes_semantics``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from referencing import Registry, Resource

# Kubernetes releases in use: the newest, the one before, the oldest that has resource.k8s.io/v1.
VERSIONS = ("1.34", "1.36", "1.37")
CRDS = Path(__file__).parents[1] / "data" / "crds"
DATA = files("kubernetes_validate") / "kubernetes-json-schema"
UNIQUE_BY = "x-kubernetes-list-map-keys"


def schema_problems(
    objects: Iterable[dict[str, Any]], *, versions: Iterable[str] = VERSIONS
) -> list[str]:
    """What an API server of any of these versions would refuse in the objects' fields."""
    found: list[str] = []
    for each in objects:
        name = f"{each.get('kind')}/{(each.get('metadata') or {}).get('name')}"
        for version in versions:
            validator = validator_of(str(each.get("apiVersion")), str(each.get("kind")), version)
            if validator is None:
                found.append(f"{name}: no {each.get('apiVersion')} {each.get('kind')} in {version}")
                continue
            errors = sorted(validator.iter_errors(each), key=lambda error: error.json_path)
            found += [f"{name}: {one.json_path}: {one.message[:200]} ({version})" for one in errors]
    return found


@cache
def validator_of(api_version: str, kind: str, version: str) -> Validator | None:
    """The validator of a kind; None where neither Kubernetes of that version nor a CRD has it."""
    registry = definitions(version)
    custom = CRDS / f"{kind}.json"
    if custom.exists():
        schema = json.loads(custom.read_text(encoding="utf-8"))
        if schema["properties"]["apiVersion"]["const"] != api_version:
            return None
    else:
        # kubernetes-validate names its files without the group's domain: networking-v1.
        group, _, short = api_version.rpartition("/")
        stem = f"{kind}-{group.split('.')[0]}-{short}" if group else f"{kind}-{short}"
        path = folder(version) / f"{stem.lower()}.json"
        if not path.is_file():
            return None
        schema = json.loads(path.read_text(encoding="utf-8"))
    return StrictValidator(schema, registry=registry)


@cache
def definitions(version: str) -> Registry[Any]:
    text = (folder(version) / "_definitions.json").read_text(encoding="utf-8")
    return Registry().with_resource(
        "https://kubernetes.io/api/_definitions.json", Resource.from_contents(json.loads(text))
    )


def folder(version: str) -> Any:
    return DATA / f"v{version}.0-local-strict"


def unique_by(
    _validator: Validator, keys: list[str], items: Any, _schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    """An API server refuses two items of a list with the same map keys."""
    seen = set()
    for item in items if isinstance(items, list) else ():
        key = tuple(str(item.get(one)) for one in keys) if isinstance(item, dict) else None
        if key in seen:
            yield jsonschema.ValidationError(f"duplicated {', '.join(keys)}: {', '.join(key)}")
        seen.add(key)


StrictValidator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {UNIQUE_BY: unique_by}
)
