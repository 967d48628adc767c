"""What a CRD means is kept when it is distilled: a small CRD with each of OpenAPI's oddities."""

from __future__ import annotations

from typing import Any

import pytest
from judges.schemas import StrictValidator, definitions
from tool_modules import tool


def crd(**fields: Any) -> dict[str, Any]:
    """A CRD whose spec has these fields."""
    root = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"}, "status": {"type": "object"},
            "spec": {"type": "object", "required": sorted(fields), "properties": fields},
        },
    }  # fmt: skip
    old = {"name": "v1", "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    new = {"name": "v2", "storage": True, "schema": {"openAPIV3Schema": root}}
    return {"spec": {"group": "a.b", "names": {"kind": "Odd"}, "versions": [old, new]}}


def problems(of: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    body = {"apiVersion": "a.b/v2", "kind": "Odd", "metadata": {"name": "x"}, "spec": spec}
    schema = tool("distil_crds").distil(of)
    validator = StrictValidator(schema, registry=definitions("1.37"))
    return [error.message for error in validator.iter_errors(body)]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ({"type": "string", "description": "long", "default": "d"}, ["x"], [1, None]),
        ({"type": "string", "nullable": True, "enum": ["a"]}, ["a", None], ["b", 3]),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}],
          "pattern": "^[0-9]+%$"}, [3, "25%"], ["25", 1.5, True]),
        ({"type": "object"}, [{}], [{"pruned": 1}]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{"kept": 1}], [3]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True,
          "properties": {"p": {"type": "object", "properties": {"q": {"type": "string"}}}}},
         [{"kept": 1, "p": {"q": "x"}}], [{"p": {"pruned": 1}}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "1"}]),
        ({"type": "object", "additionalProperties": True}, [{"a": {"b": 1}}], ["a"]),
        ({"type": "object", "x-kubernetes-embedded-resource": True,
          "x-kubernetes-preserve-unknown-fields": True}, [{"kind": "X", "spec": {}}], [{"kind": 3}]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0]),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
         [["a", "b"]], [["a", "a"]]),
        ({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
          "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
         [[{"n": "a"}, {"n": "b"}]], [[{"n": "a"}, {"n": "a"}]]),
        ({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
          "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
         [{"a": "x"}, {"b": "x"}], [{}, {"a": "x", "b": "x"}]),
        ({"type": "object", "properties": {"m": {"type": "string"}},
          "not": {"properties": {"m": {"enum": ["off"]}}, "required": ["m"]}},
         [{}, {"m": "on"}], [{"m": "off"}]),
        # A field may be called as a keyword is.
        ({"type": "object", "properties": {"description": {"type": "string"},
          "default": {"type": "integer"}}}, [{"description": "d", "default": 1}], [{"default": "d"}]),
    ],
)  # fmt: skip
def test_each_oddity(field: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert problems(crd(f=field), {"f": value}) == []
    for value in bad:
        assert problems(crd(f=field), {"f": value}), value


def test_required_fields_with_a_default_may_be_left_out() -> None:
    of = crd(a={"type": "string"}, b={"type": "string", "default": "x"})
    assert problems(of, {"a": "x"}) == []
    assert problems(of, {"b": "x"}) == ["'a' is a required property"]


def test_a_pod_spec_is_kubernetes_own_with_the_fields_of_the_crd() -> None:
    names = ("containers", "volumes", "restartPolicy", "nodeName")
    pod = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    of = crd(template=pod)
    container = {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}
    assert problems(of, {"template": {"containers": [container]}}) == []
    assert problems(of, {"template": {}}) == [], "the CRD does not ask for containers"
    assert problems(of, {"template": {"containers": [container | {"imag": "i"}]}})
    assert problems(of, {"template": {"hostname": "h"}}), "this CRD has no hostname"


def test_large_parts_are_written_once() -> None:
    large = {
        "type": "object",
        "properties": {f"field{index}": {"type": "string"} for index in range(20)},
    }
    schema = tool("distil_crds").distil(crd(one=large, two=large))
    spec = schema["properties"]["spec"]["properties"]
    assert spec["one"] == spec["two"] == {"$ref": "#/$defs/one"}
    assert problems(crd(one=large, two=large), {"one": {"field3": "x"}, "two": {}}) == []
    assert problems(crd(one=large, two=large), {"one": {"field": "x"}, "two": {}})
