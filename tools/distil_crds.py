"""Distil CustomResourceDefinitions to the small JSON Schemas in ``tests/data/crds``.

``python tools/distil_crds.py FOLDER`` reads the CRDs of ``SOURCES`` from the YAML files in FOLDER
and writes one schema per kind, of its storage version. ``--out`` writes elsewhere.

What a schema says is what an API server (with strict field validation, as kubectl asks for) does:

- a field the CRD does not name is refused, but where ``x-kubernetes-preserve-unknown-fields``
  keeps it;
- a required field with a default may be left out, since defaults come before validation;
- ``nullable`` and ``x-kubernetes-int-or-string`` mean what OpenAPI and Kubernetes mean by them;
- ``status`` is the controller's and is not accepted.

An embedded PodSpec becomes references into kubernetes-validate's definitions, field by field, so
that the CRD still decides which fields exist. Lost: CEL rules (``x-kubernetes-validations``),
formats, and what a newer Kubernetes knows below a PodSpec's fields.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

OUT = Path(__file__).parents[1] / "tests" / "data" / "crds"
# Kubernetes' own types, under the name that kubernetes-validate's schemas call them by.
BASE = "https://kubernetes.io/api/"
DEFINITIONS = "/api/_definitions.json#/$defs/"
POD_SPEC = f"{DEFINITIONS}io.k8s.api.core.v1.PodSpec/properties/"
OBJECT_META = f"{DEFINITIONS}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

VALIDATIONS = frozenset({
    "type", "enum", "pattern", "required", "minimum", "maximum", "multipleOf", "minLength",
    "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
})  # fmt: skip
LIST_TYPE, LIST_MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
SHARED_FROM = 300  # characters from which on a schema that occurs twice is written once


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a CRD was taken from; all of them are under Apache-2.0."""

    repository: str
    version: str


SOURCES = {
    "Gateway": Source(repository="kubernetes-sigs/gateway-api", version="v1.6.1"),
    "HTTPRoute": Source(repository="kubernetes-sigs/gateway-api", version="v1.6.1"),
    "InferenceObjective": Source(repository="llm-d/llm-d-router", version="main at v0.10.0"),
    "InferencePool": Source(
        repository="kubernetes-sigs/gateway-api-inference-extension", version="main at v1.6.0"
    ),
    "LLMInferenceService": Source(repository="kserve/kserve", version="v0.20.0-rc1"),
    "LeaderWorkerSet": Source(repository="kubernetes-sigs/lws", version="v0.10.0"),
    "PodMonitor": Source(repository="prometheus-operator/prometheus-operator", version="v0.93.0"),
    "PrometheusRule": Source(
        repository="prometheus-operator/prometheus-operator", version="v0.93.0"
    ),
    "ScaledObject": Source(repository="kedacore/keda", version="v2.20.2"),
    "ServiceMonitor": Source(
        repository="prometheus-operator/prometheus-operator", version="v0.93.0"
    ),
}


def distil(crd: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a CRD's storage version."""
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    (version,) = (one for one in spec["versions"] if one["storage"])
    root = version["schema"]["openAPIV3Schema"]
    body = {key: of for key, of in root["properties"].items() if key != "status"}
    schema = structural(root | {"properties": body})
    schema["properties"] |= {
        "apiVersion": {"const": f"{group}/{version['name']}"},
        "kind": {"const": kind},
        "metadata": {"$ref": OBJECT_META},
    }
    schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
    return {"$id": f"{BASE}{group}/{version['name']}/{kind}"} | share(schema)


def structural(schema: dict[str, Any]) -> dict[str, Any]:
    """A node of a structural schema, in JSON Schema's words."""
    kept = validations(schema)
    if "properties" in schema:
        fields = schema["properties"]
        pod = {"containers", "volumes", "restartPolicy"} <= fields.keys()
        kept["properties"] = {
            name: {"$ref": POD_SPEC + name} if pod else structural(of)
            for name, of in fields.items()
        }
        # A key that a default fills in need not be written.
        required = [key for key in kept.pop("required", ()) if "default" not in fields.get(key, {})]
        if required:
            kept["required"] = required
    if schema.get("x-kubernetes-embedded-resource"):
        known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
        kept["properties"] = known | kept.get("properties", {})
    if "items" in schema:
        kept["items"] = structural(schema["items"])
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        kept["additionalProperties"] = structural(values)
    elif (
        kept.get("type") == "object"
        and not values
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        kept["additionalProperties"] = False
    if schema.get(LIST_TYPE) == "map":
        kept[LIST_MAP_KEYS] = schema[LIST_MAP_KEYS]
    elif schema.get(LIST_TYPE) == "set":
        kept["uniqueItems"] = True
    if schema.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
        kept.pop("anyOf", None)
    return {"anyOf": [{"type": "null"}, kept]} if schema.get("nullable") else kept


def validations(schema: dict[str, Any]) -> dict[str, Any]:
    """What limits a value without naming fields: all that stands below ``anyOf`` and its like."""
    kept = {key: schema[key] for key in schema.keys() & VALIDATIONS}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True:  # OpenAPI 3.0's way of saying it
            kept[exclusive] = kept.pop(bound)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            kept[key] = [branch(one) for one in schema[key]]
    if "not" in schema:
        kept["not"] = branch(schema["not"])
    return kept


def branch(schema: dict[str, Any]) -> dict[str, Any]:
    """A branch of ``anyOf`` and its like: fields named here are limited, others left alone."""
    kept = validations(schema)
    if "properties" in schema:
        kept["properties"] = {name: branch(of) for name, of in schema["properties"].items()}
    if "items" in schema:
        kept["items"] = branch(schema["items"])
    return kept


def share(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with each large part that occurs more than once moved to ``$defs``."""
    counts = Counter(text for _, text in parts(schema, "root") if len(text) >= SHARED_FROM)
    names: dict[str, str] = {}
    for name, text in parts(schema, "root"):
        if counts[text] > 1 and text not in names:
            taken = sum(used.rstrip("0123456789") == name for used in names.values())
            names[text] = f"{name}{taken or ''}"

    def replaced(node: Any, *, whole: bool = False) -> Any:
        if isinstance(node, list):
            return [replaced(one) for one in node]
        if not isinstance(node, dict):
            return node
        text = written(node)
        if text in names and not whole:
            return {"$ref": f"#/$defs/{names[text]}"}
        return {key: replaced(value) for key, value in node.items()}

    definitions = {
        name: replaced(json.loads(text), whole=True) for text, name in sorted(names.items())
    }
    return replaced(schema) | ({"$defs": definitions} if definitions else {})


def parts(node: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every schema in a schema, with the field it is of."""
    if isinstance(node, dict):
        # Of a schema the type is a text; a mapping of properties may have a field called type.
        if isinstance(node.get("type"), str) or isinstance(node.get("anyOf"), list):
            yield name, written(node)
        for key, value in node.items():
            yield from parts(value, name if key in ("properties", "items") else key)


def written(schema: dict[str, Any]) -> str:
    """A schema's one spelling, so that equal schemas are equal texts."""
    return json.dumps(schema, sort_keys=True, separators=(",", ":"))


def definitions_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The CRDs in a folder's YAML files, by kind."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = {}
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=loader):
            if document and document.get("kind") == "CustomResourceDefinition":
                found[document["spec"]["names"]["kind"]] = document
    return found


def main() -> None:
    """Write the schemas of ``SOURCES``."""
    parser = argparse.ArgumentParser(description="Distil CRDs to small JSON Schemas.")
    parser.add_argument("folder", type=Path, help="folder with the CRDs' YAML files")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = definitions_in(options.folder)
    options.out.mkdir(parents=True, exist_ok=True)
    for kind, source in SOURCES.items():
        comment = f"{source.repository} {source.version}, Apache-2.0; by tools/distil_crds.py"
        text = written({"$comment": comment} | distil(found[kind]))
        (options.out / f"{kind}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{kind}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
