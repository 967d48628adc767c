"""The schema judge accepts what Kubernetes does and refuses what it does."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest
from judges.bundles import ABSENT, BUNDLE, CUSTOM, broken, objects
from judges.schemas import CRDS, VERSIONS, schema_problems

CONTAINER = "spec.template.spec.containers.0"


@pytest.mark.parametrize("path", [BUNDLE, CUSTOM], ids=["bundle", "custom"])
def test_good_objects_pass_in_every_version(path: Any) -> None:
    assert schema_problems(objects(path)) == []


def test_the_good_objects_are_of_every_custom_kind() -> None:
    kinds = {one["kind"] for path in (BUNDLE, CUSTOM) for one in objects(path)}
    assert {path.stem for path in CRDS.glob("*.json")} <= kinds


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"),
    [
        ("Deployment", "spec.replica", 2, "'replica' was unexpected"),
        ("Deployment", "spec.replicas", "2", "'2' is not of type"),
        ("Deployment", f"{CONTAINER}.name", ABSENT, "'name' is a required property"),
        ("Deployment", f"{CONTAINER}.env.0.value", 8, "8 is not of type"),
        ("Deployment", f"{CONTAINER}.startupProbe.httpGet.prot", 1, "'prot' was unexpected"),
        ("Service", "spec.ports.0.targetPort", 1.5, "1.5 is not"),
        ("PodDisruptionBudget", "apiVersion", "policy/v1beta1", "no policy/v1beta1"),
    ],
)  # fmt: skip
def test_built_in_kinds(kind: str, path: str, value: Any, expected: str) -> None:
    found = schema_problems(broken(kind, path, value))
    assert len(found) >= len(VERSIONS), "each version says so"
    assert all(expected in line for line in found), found


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"),
    [
        ("ScaledObject", "spec.scaleTarget", {"name": "x"}, "'scaleTarget' was unexpected"),
        ("ScaledObject", "spec.triggers.0.metadata.threshold", 4, "4 is not of type 'string'"),
        ("ScaledObject", "spec.triggers", ABSENT, "'triggers' is a required property"),
        ("PodMonitor", "spec.podMetricsEndpoints.0.interval", "15", "'15' does not match"),
        ("PodMonitor", "spec.podMetricsEndpoints.0.scheme", "ftp", "'ftp' is not one of"),
        ("PodMonitor", "metadata.label", {}, "'label' was unexpected"),
        ("PodMonitor", "status", {}, "'status' was unexpected"),
    ],
)  # fmt: skip
def test_custom_kinds_of_the_bundle(kind: str, path: str, value: Any, expected: str) -> None:
    found = schema_problems(broken(kind, path, value), versions=["1.37"])
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"),
    [
        ("HTTPRoute", "spec.rules.0.matches.0.path.type", "Prefix", "'Prefix' is not one of"),
        ("HTTPRoute", "spec.rules.0.timeouts.request", "5 minutes", "does not match"),
        ("HTTPRoute", "spec.rules.0.backendRefs.0.port", 70000, "70000 is greater than"),
        ("Gateway", "spec.listeners", [{"name": "a", "port": 80, "protocol": "HTTP"}] * 2,
         "duplicated name: a"),
        ("InferencePool", "spec.targetPorts", [], "[] should be non-empty"),
        ("InferencePool", "spec.endpointPickerRef.failureMode", "Open", "'Open' is not one of"),
        ("InferencePool", "spec.endpointPickerRef.port.number", ABSENT, "'number' is a required"),
        ("InferenceObjective", "spec.priority", "high", "'high' is not of type 'integer'"),
        ("InferenceObjective", "spec.poolRef", ABSENT, "'poolRef' is a required property"),
        ("LLMInferenceService", "spec.model.uri", ABSENT, "'uri' is a required property"),
        ("LLMInferenceService", "spec.template.containers.0.arg", [], "'arg' was unexpected"),
        ("LLMInferenceService", "spec.template.container", [], "'container' was unexpected"),
        ("LLMInferenceService", "spec.parallelism.tensorParallel", 2, "was unexpected"),
        ("LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate", ABSENT, "required"),
        ("LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate.spec.containers", ABSENT,
         "'containers' is a required property"),
        ("LeaderWorkerSet", "spec.leaderWorkerTemplate.leaderTemplate.spec.volumes", [{}],
         "'name' is a required property"),
        ("LeaderWorkerSet", "spec.leaderWorkerTemplate.size", "two", "'two' is not of type"),
        ("ServiceMonitor", "spec.endpoints", ABSENT, "'endpoints' is a required property"),
        ("PrometheusRule", "spec.groups.0.rules.0.for", "5 min", "does not match"),
        ("PrometheusRule", "spec.groups.0.rules.0.expr", ABSENT, "'expr' is a required"),
        ("LLMInferenceService", "apiVersion", "serving.kserve.io/v1", "no serving.kserve.io/v1"),
    ],
)  # fmt: skip
def test_other_custom_kinds(kind: str, path: str, value: Any, expected: str) -> None:
    found = schema_problems(broken(kind, path, value, CUSTOM), versions=["1.37"])
    assert len(found) == 1, found
    assert expected in found[0]


def test_an_unknown_kind_never_passes() -> None:
    model = {"apiVersion": "kubeai.org/v1", "kind": "Model", "metadata": {"name": "m"}}
    assert schema_problems([model], versions=["1.37"]) == [
        "Model/m: no kubeai.org/v1 Model in 1.37"
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_same_verdict_as_kubernetes_validate(version: str) -> None:
    core = [one for one in objects() if not (CRDS / f"{one['kind']}.json").exists()]
    wrong = broken("Deployment", f"{CONTAINER}.imagePullPolicys", "Always")
    for one in core:
        assert kubernetes_validate.validate(one, version, strict=True) == version
    with pytest.raises(kubernetes_validate.ValidationError, match="imagePullPolicys"):
        kubernetes_validate.validate(wrong[3], version, strict=True)
    assert len(schema_problems([wrong[3]], versions=[version])) == 1


@pytest.mark.parametrize("path", sorted(CRDS.glob("*.json")), ids=lambda path: path.stem)
def test_crd_schemas_say_where_they_are_from(path: Any) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert "Apache-2.0" in schema["$comment"]
    assert schema["properties"]["kind"]["const"] == path.stem
    assert path.stat().st_size < 40_000
