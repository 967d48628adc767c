"""What schemas miss: one good bundle, and one broken case for each thing a rule looks for."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.bundles import ABSENT, BUNDLE, CUSTOM, broken, objects

from vllm_advisor.parse.kubernetes_semantics import ManifestProblem, manifest_problems
from vllm_advisor.parse.kubernetes_semantics.names import (
    label_error,
    label_key_error,
    label_value_error,
    port_name_error,
    subdomain_error,
)
from vllm_advisor.parse.kubernetes_semantics.resources import quantity

POD = "spec.template.spec"
VLLM = f"{POD}.containers.0"
# What custom.yaml takes for granted.
BESIDE = ("Service/contracts-epp",)


def problems(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (one.code, one.object.partition("/")[0], one.path)
        for one in manifest_problems(found, external=BESIDE)
    ]


def with_object(**of: Any) -> list[dict[str, Any]]:
    """The bundle and an object more, in its namespace."""
    name = of.pop("name", "more")
    more = {"apiVersion": "v1", "metadata": {"name": name, "namespace": "serving"}} | of
    return [*objects(), more]


def test_good_objects_have_no_problems() -> None:
    assert manifest_problems(objects(BUNDLE)) == []
    together = [*objects(BUNDLE), *({**one, "metadata": {**one["metadata"], "namespace": "serving"}}
                                    for one in objects(CUSTOM))]  # fmt: skip
    assert manifest_problems(together, external=BESIDE) == []


@pytest.mark.parametrize(
    ("kind", "path", "value", "code", "at"),
    [
        # Names and labels.
        ("Deployment", "metadata.name", "Contracts", "name-not-valid", "metadata.name"),
        ("ConfigMap", "metadata.namespace", "a.b", "name-not-valid", "metadata.namespace"),
        ("Deployment", f"{VLLM}.name", "vllm_main", "name-not-valid", f"{VLLM}.name"),
        ("Deployment", f"{POD}.hostname", "h" * 64, "name-not-valid", f"{POD}.hostname"),
        ("Deployment", f"{POD}.subdomain", "a.b", "name-not-valid", f"{POD}.subdomain"),
        ("Service", "metadata.labels", {"a b": "x"}, "label-not-valid", "metadata.labels[a b]"),
        ("Service", "metadata.labels", {"a": "x" * 64}, "label-not-valid", "metadata.labels[a]"),
        ("Service", "metadata.labels", {"a": 1}, "label-not-valid", "metadata.labels[a]"),
        ("Service", "metadata.annotations", {"-a": ""}, "label-not-valid",
         "metadata.annotations[-a]"),
        ("Deployment", f"{POD}.nodeSelector", {"a": "x y"}, "label-not-valid",
         f"{POD}.nodeSelector[a]"),
        ("Deployment", "spec.template.metadata.labels.model", "Qwen/Qwen3-8B", "label-not-valid",
         "spec.template.metadata.labels[model]"),
        # Twice.
        ("Deployment", f"{VLLM}.env.1", {"name": "SERVED_NAME", "value": "x"}, "name-repeated",
         f"{VLLM}.env.1.name"),
        ("Deployment", f"{VLLM}.volumeMounts.1.mountPath", "/weights", "name-repeated",
         f"{VLLM}.volumeMounts.1.mountPath"),
        ("Deployment", f"{POD}.volumes.3", {"name": "shm", "emptyDir": {}}, "name-repeated",
         f"{POD}.volumes.3.name"),
        ("Deployment", f"{VLLM}.ports.1", {"containerPort": 8000, "protocol": "TCP"},
         "name-repeated", f"{VLLM}.ports.1.containerPort"),
        ("Service", "spec.ports.1", {"port": 81, "targetPort": 8000}, "name-repeated",
         "spec.ports.1.name"),
        # Variables.
        ("Deployment", f"{VLLM}.env.0.value", 8, "variable-not-valid", f"{VLLM}.env.0.value"),
        ("Deployment", f"{VLLM}.env.1.value", "k", "variable-not-valid", f"{VLLM}.env.1"),
        ("Deployment", f"{VLLM}.env.2", {"name": "A=B", "value": ""}, "variable-not-valid",
         f"{VLLM}.env.2.name"),
        ("Deployment", f"{VLLM}.args.0", "$(MODEL)", "variable-not-defined", f"{VLLM}.args.0"),
        ("Deployment", f"{VLLM}.env.2", {"name": "B", "value": "$(C)"}, "variable-not-defined",
         f"{VLLM}.env.2.value"),
        ("Deployment", f"{VLLM}.command", ["sh", "-c", "$(nproc) $(MODEL)"],
         "variable-not-defined", f"{VLLM}.command.2"),
        # Ports.
        ("Deployment", f"{VLLM}.startupProbe.httpGet.port", "metrics", "port-not-declared",
         f"{VLLM}.startupProbe.httpGet.port"),
        ("Deployment", f"{VLLM}.readinessProbe.httpGet.port", 8080, "port-number-not-declared",
         f"{VLLM}.readinessProbe.httpGet.port"),
        ("Deployment", f"{VLLM}.lifecycle.preStop", {"httpGet": {"port": "x"}},
         "port-not-declared", f"{VLLM}.lifecycle.preStop.httpGet.port"),
        ("Service", "spec.ports.0.targetPort", "api", "port-not-declared",
         "spec.ports.0.targetPort"),
        ("Service", "spec.ports.0.targetPort", ABSENT, "port-number-not-declared",
         "spec.ports.0.targetPort"),
        ("PodMonitor", "spec.podMetricsEndpoints.0.port", "metrics", "port-not-declared",
         "spec.podMetricsEndpoints.0.port"),
        ("NetworkPolicy", "spec.ingress.0.ports.0.port", 80, "port-number-not-declared",
         "spec.ingress.0.ports.0.port"),
        # Quantities and devices.
        ("Deployment", f"{VLLM}.resources.limits.memory", "64GiB", "quantity-not-valid",
         f"{VLLM}.resources.limits[memory]"),
        ("Deployment", f"{VLLM}.resources.limits.memory", "64500m", "quantity-not-valid",
         f"{VLLM}.resources.limits[memory]"),
        ("Deployment", f"{VLLM}.resources.requests.cpu", "-1", "quantity-not-valid",
         f"{VLLM}.resources.requests[cpu]"),
        ("Deployment", f"{VLLM}.resources.requests.memory", "65Gi", "request-above-limit",
         f"{VLLM}.resources.requests[memory]"),
        ("Deployment", f"{VLLM}.resources.limits.nvidia~com/gpu", "4", "request-not-equal-to-limit",
         f"{VLLM}.resources.requests[nvidia.com/gpu]"),
        ("Deployment", f"{VLLM}.resources.limits", {"memory": "64Gi"},
         "request-not-equal-to-limit", f"{VLLM}.resources.requests[nvidia.com/gpu]"),
        ("Deployment", f"{VLLM}.resources", {"limits": {"nvidia.com/gpu": "1500m"}},
         "quantity-not-valid", f"{VLLM}.resources.limits[nvidia.com/gpu]"),
        ("Deployment", f"{POD}.volumes.2.emptyDir.sizeLimit", "8gb", "quantity-not-valid",
         f"{POD}.volumes.2.emptyDir.sizeLimit"),
        ("PersistentVolumeClaim", "spec.resources.requests.storage", "200 Gi",
         "quantity-not-valid", "spec.resources.requests[storage]"),
        # Volumes.
        ("Deployment", f"{VLLM}.volumeMounts.0.name", "models", "volume-not-there",
         f"{VLLM}.volumeMounts.0.name"),
        ("Deployment", f"{POD}.volumes.2.emptyDir.sizeLimit", "65Gi", "memory-volume-above-limit",
         f"{VLLM}.volumeMounts.2"),
        # Selectors.
        ("Deployment", "spec.selector.matchLabels.app~kubernetes~io/name", "x",
         "selector-without-pods", "spec.selector"),
        ("Deployment", "spec.selector", {"matchLabels": {}}, "selector-without-pods",
         "spec.selector"),
        ("Deployment", "spec.selector.matchExpressions",
         [{"key": "app.kubernetes.io/part-of", "operator": "NotIn", "values": ["demo"]}],
         "selector-without-pods", "spec.selector"),
        ("Service", "spec.selector.tier", "web", "selector-without-pods", "spec.selector"),
        ("PodDisruptionBudget", "spec.selector.matchLabels", {"app": "x"},
         "selector-without-pods", "spec.selector"),
        ("NetworkPolicy", "spec.podSelector.matchLabels", {"app": "x"}, "selector-without-pods",
         "spec.podSelector"),
        ("PodMonitor", "spec.selector.matchLabels", {"app": "x"}, "selector-without-pods",
         "spec.selector"),
        ("PodDisruptionBudget", "metadata.namespace", "other", "selector-without-pods",
         "spec.selector"),
        # References.
        ("Deployment", f"{POD}.serviceAccountName", "x", "reference-missing",
         f"{POD}.serviceAccountName"),
        ("Deployment", f"{POD}.volumes.0.persistentVolumeClaim.claimName", "x",
         "reference-missing", f"{POD}.volumes.0.persistentVolumeClaim.claimName"),
        ("Deployment", f"{POD}.volumes.1.configMap.name", "x", "reference-missing",
         f"{POD}.volumes.1.configMap.name"),
        ("Deployment", f"{POD}.volumes.1.configMap.items", [{"key": "x", "path": "y"}],
         "reference-missing", f"{POD}.volumes.1.configMap"),
        ("Deployment", f"{POD}.volumes.1", {"name": "templates", "projected": {"sources": [
            {"configMap": {"name": "x"}}]}}, "reference-missing",
         f"{POD}.volumes.1.projected.sources.0.configMap.name"),
        ("Deployment", f"{VLLM}.envFrom", [{"configMapRef": {"name": "x"}}], "reference-missing",
         f"{VLLM}.envFrom.0.configMapRef.name"),
        ("Deployment", f"{VLLM}.env.2", {"name": "B", "valueFrom": {"configMapKeyRef": {
            "name": "contracts-templates", "key": "x"}}}, "reference-missing",
         f"{VLLM}.env.2.valueFrom.configMapKeyRef"),
        ("Deployment", f"{VLLM}.resources.claims", [{"name": "gpu"}], "reference-missing",
         f"{VLLM}.resources.claims.0.name"),
        ("Deployment", f"{POD}.resourceClaims", [{"name": "g", "resourceClaimTemplateName": "x"}],
         "reference-missing", f"{POD}.resourceClaims.0.resourceClaimTemplateName"),
        ("ScaledObject", "spec.scaleTargetRef.name", "x", "reference-missing",
         "spec.scaleTargetRef.name"),
        ("ScaledObject", "spec.scaleTargetRef.kind", "StatefulSet", "reference-missing",
         "spec.scaleTargetRef.name"),
        # Times.
        ("Deployment", f"{POD}.terminationGracePeriodSeconds", 79, "shutdown-beyond-grace", VLLM),
        ("Deployment", f"{POD}.terminationGracePeriodSeconds", ABSENT, "shutdown-beyond-grace",
         VLLM),
        ("Deployment", f"{VLLM}.lifecycle.preStop", {"sleep": {"seconds": 41}},
         "shutdown-beyond-grace", VLLM),
        ("Deployment", f"{VLLM}.args.2", "--shutdown_timeout=90", "shutdown-beyond-grace", VLLM),
        ("Deployment", f"{VLLM}.startupProbe.failureThreshold", 241, "startup-beyond-deadline",
         f"{VLLM}.startupProbe"),
        ("Deployment", "spec.progressDeadlineSeconds", ABSENT, "startup-beyond-deadline",
         f"{VLLM}.startupProbe"),
    ],
)  # fmt: skip
def test_each_rule_finds_its_broken_case(
    kind: str, path: str, value: Any, code: str, at: str
) -> None:
    found = problems(broken(kind, path, value))
    assert (code, kind, indexed(at)) in found


def indexed(path: str) -> str:
    """``a.0.b`` as problems write it: ``a[0].b``."""
    head, _, key = path.partition("[")
    parts = [f"[{part}]" if part.isdigit() else f".{part}" for part in head.split(".")]
    return "".join(parts).removeprefix(".") + (f"[{key}" if key else "")


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", f"{POD}.hostname", "h" * 63),
        ("Service", "metadata.labels", {"example.com/a_b": "", "x": "y" * 63}),
        ("Deployment", f"{VLLM}.ports.1", {"containerPort": 8000, "protocol": "UDP"}),
        ("Deployment", f"{VLLM}.args.0", "$$(MODEL) $(SERVED_NAME) $(KUBERNETES_SERVICE_HOST)"),
        ("Deployment", f"{VLLM}.args.0", '{"cost": "$5 (net)"}'),
        ("Deployment", f"{VLLM}.command", ["bash", "-c", "exec vllm -n $(nproc) $(SERVED_NAME)"]),
        ("Deployment", f"{VLLM}.env.2", {"name": "B", "value": "$(SERVED_NAME)"}),
        ("Deployment", f"{VLLM}.readinessProbe.httpGet.port", "http"),
        ("Service", "spec.selector", ABSENT),
        ("Service", "spec.ports.1", {"name": "b", "port": 81, "targetPort": 8000}),
        ("NetworkPolicy", "spec.ingress.0.ports.0", {"port": 1, "endPort": 9000}),
        ("NetworkPolicy", "spec.podSelector", {}),
        ("PodMonitor", "spec.namespaceSelector", {"any": True}),
        ("Deployment", f"{VLLM}.resources.requests", {"cpu": 4, "memory": "64Gi"}),
        ("Deployment", f"{VLLM}.resources.requests.nvidia~com/gpu", 2),
        ("Deployment", f"{POD}.volumes.2.emptyDir.sizeLimit", "64Gi"),
        ("Deployment", f"{POD}.volumes.2.emptyDir", {"sizeLimit": "1Ti"}),
        ("Deployment", f"{POD}.volumes.1.configMap", {"name": "x", "optional": True}),
        ("Deployment", f"{POD}.serviceAccountName", "default"),
        ("Deployment", f"{POD}.terminationGracePeriodSeconds", 80),  # 20 + 60
        ("Deployment", f"{VLLM}.startupProbe.failureThreshold", 240),  # x 10 s = 2400
        ("Deployment", f"{VLLM}.startupProbe", ABSENT),
        ("PersistentVolumeClaim", "spec.accessModes", ["ReadWriteOnce", "ReadWriteMany"]),
    ],
)  # fmt: skip
def test_what_is_right_is_not_found(kind: str, path: str, value: Any) -> None:
    assert problems(broken(kind, path, value)) == []


def test_ports_that_nobody_declares_may_be_any_numbers() -> None:
    found = broken("Deployment", f"{VLLM}.ports", ABSENT)
    found = [one for one in found if one["kind"] not in ("Service", "PodMonitor")]
    assert problems(found) == [
        ("port-not-declared", "Deployment", f"{POD}.containers[0].startupProbe.httpGet.port")
    ]


def test_a_schema_of_selectors_has_no_labels() -> None:
    schema = {"properties": {"matchLabels": {"additionalProperties": {"type": "string"}}}}
    crd = {"kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}, "spec": {"s": schema}}
    assert problems([crd]) == []


def test_a_claim_of_one_node_is_for_one_pod() -> None:
    found = broken("PersistentVolumeClaim", "spec.accessModes", ["ReadWriteOnce"])
    assert problems(found) == [("claim-shared", "Deployment", f"{POD}.volumes[0]")]
    found = broken("PersistentVolumeClaim", "spec.accessModes", ["ReadWriteOncePod"])
    found = [one for one in found if one["kind"] != "ScaledObject"]
    (deployment,) = (one for one in found if one["kind"] == "Deployment")
    deployment["spec"]["replicas"] = 1
    assert problems(found) == []
    twin = copy.deepcopy(deployment)
    twin["metadata"]["name"] = "twin"
    assert [code for code, *_ in problems([*found, twin])] == ["claim-shared"] * 2
    scaled = [*found, objects()[-2]]
    assert scaled[-1]["kind"] == "ScaledObject"
    assert [code for code, *_ in problems(scaled)] == ["claim-shared"]


@pytest.mark.parametrize(
    ("kind", "name", "fits"),
    [
        ("Service", "s" * 63, True),
        ("Service", "s" * 64, False),
        ("Service", "a.b", False),
        ("Service", "8b", False),
        ("Namespace", "8b", True),
        ("ConfigMap", "8b.llama-3.1", True),
        ("ConfigMap", "c" * 253, True),
        ("ConfigMap", "c" * 254, False),
        ("ConfigMap", "a..b", False),
        ("ConfigMap", "a_b", False),
        ("ConfigMap", 12, False),
        ("StatefulSet", "s" * 52, True),
        ("StatefulSet", "s" * 53, False),
        ("Role", "system:vllm", True),
        ("Role", "a/b", False),
    ],
)
def test_names_by_kind(kind: str, name: Any, *, fits: bool) -> None:
    found = manifest_problems([{"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}])
    assert [one.path for one in found if one.code == "name-not-valid"] == (
        [] if fits else ["metadata.name"]
    )


def test_objects_without_a_name_or_with_the_same() -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
    assert manifest_problems([nameless, generated]) == [
        ManifestProblem(
            code="name-not-valid", object="ConfigMap", path="metadata.name", message="there is none"
        )
    ]
    again = [*objects(), copy.deepcopy(objects()[1])]
    assert problems(again) == [("name-repeated", "PersistentVolumeClaim", "metadata.name")]


@pytest.mark.parametrize("name", ["vllm", "vllm-nixl-side-channel", "vllm-dp-master"])
def test_a_service_whose_variables_vllm_reads(name: str) -> None:
    spec = {"selector": {"app.kubernetes.io/name": "contracts"}, "ports": [{"port": 8000}]}
    service = {"apiVersion": "v1", "kind": "Service", "spec": spec,
               "metadata": {"name": name, "namespace": "serving"}}  # fmt: skip
    linked = broken("Deployment", f"{POD}.enableServiceLinks", ABSENT)
    assert problems([*linked, service]) == [("service-link-taken-as-setting", "Deployment", POD)]
    assert problems([*objects(), service]) == [], "links are off"
    assert problems(linked) == []
    headless = {**service, "spec": {**spec, "clusterIP": "None"}}
    assert problems([*linked, headless]) == [], "it has no address"
    elsewhere = {**service, "metadata": {"name": name}, "spec": {"ports": spec["ports"]}}
    assert problems([*linked, elsewhere]) == []
    harmless = {**service, "metadata": {"name": "vllm-router", "namespace": "serving"}}
    assert problems([*linked, harmless]) == []
    linked[3]["spec"]["template"]["spec"]["containers"][0]["args"] += [
        "--fail-on-environ-validation"
    ]
    assert problems([*linked, harmless])[0][0] == "service-link-taken-as-setting"


def test_other_objects_that_point_at_things() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    scaler = with_object(kind="HorizontalPodAutoscaler", spec={"scaleTargetRef": target})
    assert problems(scaler) == [
        ("reference-missing", "HorizontalPodAutoscaler", "spec.scaleTargetRef.name")
    ]
    route = {"parentRefs": [{"name": "g"}], "rules": [{"backendRefs": [{"name": "contracts"}]}]}
    assert problems(with_object(kind="HTTPRoute", spec=route)) == [
        ("reference-missing", "HTTPRoute", "spec.parentRefs[0].name")
    ]
    route["rules"][0]["backendRefs"][0] = {"kind": "InferencePool", "name": "contracts"}
    found = manifest_problems(with_object(kind="HTTPRoute", spec=route), external=["Gateway/g"])
    assert [one.path for one in found] == ["spec.rules[0].backendRefs[0].name"]
    pool = {"selector": {"matchLabels": {"app": "x"}}, "endpointPickerRef": {"name": "contracts"}}
    assert problems(with_object(kind="InferencePool", spec=pool)) == [
        ("selector-without-pods", "InferencePool", "spec.selector")
    ]
    monitor = {"selector": {"matchLabels": {"app.kubernetes.io/name": "contracts"}},
               "endpoints": [{"port": "metrics"}]}  # fmt: skip
    assert problems(with_object(kind="ServiceMonitor", spec=monitor)) == [
        ("port-not-declared", "ServiceMonitor", "spec.endpoints[0].port")
    ]
    monitor["selector"]["matchLabels"] = {"app": "x"}
    assert problems(with_object(kind="ServiceMonitor", spec=monitor)) == [
        ("selector-without-pods", "ServiceMonitor", "spec.selector")
    ]


def test_pods_of_every_kind_of_workload() -> None:
    spec = {"containers": [{"name": "c", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    selector = {"matchLabels": {"app": "a"}}
    group = {"leaderTemplate": template, "workerTemplate": template, "size": 2}
    workloads = {
        "Deployment": {"selector": selector, "template": template},
        "StatefulSet": {"selector": selector, "template": template},
        "DaemonSet": {"selector": selector, "template": template},
        "ReplicaSet": {"selector": selector, "template": template},
        "Job": {"template": template},
        "CronJob": {"jobTemplate": {"spec": {"template": template}}},
        "Pod": spec,
        "LeaderWorkerSet": {"leaderWorkerTemplate": group},
    }
    for kind, body in workloads.items():
        one = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": body}
        found = problems([one])
        assert {code for code, *_ in found} == {"volume-not-there"}
        assert len(found) == (2 if kind == "LeaderWorkerSet" else 1)
        assert all(path.endswith("spec.containers[0].volumeMounts[0].name") for *_, path in found)
    claims = [{"metadata": {"name": "x"}, "spec": {"resources": {"requests": {"storage": "1GB"}}}}]
    workloads["StatefulSet"]["volumeClaimTemplates"] = claims
    one = {"apiVersion": "v1", "kind": "StatefulSet", "metadata": {"name": "a"},
           "spec": workloads["StatefulSet"]}  # fmt: skip
    path = "spec.volumeClaimTemplates[0].spec.resources.requests[storage]"
    assert problems([one]) == [("quantity-not-valid", "StatefulSet", path)]


def test_a_group_of_nodes_knows_what_its_controller_gives() -> None:
    container = {"name": "vllm", "args": ["--master-addr", "$(LWS_LEADER_ADDRESS)", "$(OTHER)"]}
    volumes = [{"name": "w", "persistentVolumeClaim": {"claimName": "c"}}]
    template = {"metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [container], "volumes": volumes}}  # fmt: skip
    group = {
        "kind": "LeaderWorkerSet", "metadata": {"name": "a"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }  # fmt: skip
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
             "spec": {"accessModes": ["ReadWriteOnce"]}}  # fmt: skip
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {
        "selector": {"app": "a", "leaderworkerset.sigs.k8s.io/worker-index": "0"}}}  # fmt: skip
    assert [code for code, *_ in problems([group, claim, service])] == [
        "variable-not-defined", "claim-shared",
    ]  # fmt: skip


def test_a_kserve_service_is_completed_by_its_controller() -> None:
    (service,) = (one for one in objects(CUSTOM) if one["kind"] == "LLMInferenceService")
    container = service["spec"]["template"]["containers"][0]
    container["volumeMounts"] = [{"name": "model-cache", "mountPath": "/mnt"}]
    container["args"] += ["$(GIVEN_BY_A_PRESET)", "--shutdown-timeout=99"]
    container["startupProbe"] = {"httpGet": {"port": "https"}}
    container["env"] = [{"name": "A", "value": 1}]
    monitor = {"kind": "PodMonitor", "metadata": {"name": "m"},
               "spec": {"selector": {"matchLabels": {"kserve": "x"}}}}  # fmt: skip
    at = "spec.template.containers[0].env[0].value"
    assert problems([service, monitor]) == [("variable-not-valid", "LLMInferenceService", at)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16Gi", 16 * 2**30), ("1.5Gi", 3 * 2**29), ("500m", Fraction(1, 2)), ("128974848", 128974848),
        ("129e6", 129_000_000), ("129M", 129_000_000), ("1E", 10**18), ("1E3", 1000), ("1.", 1),
        (".5", Fraction(1, 2)), (4, 4), (1.5, Fraction(3, 2)), ("+2", 2), ("-2", -2), ("1Ei", 2**60),
        ("100n", Fraction(1, 10**7)), ("0.1u", Fraction(1, 10**7)),
        ("16GiB", None), ("16GB", None), ("16 Gi", None), ("16gi", None), ("16K", None), ("", None),
        ("Gi", None), ("1e", None), ("1.2.3", None), ("1,5Gi", None), (True, None), (None, None),
        ("0x10", None), ("1e3Gi", None), ("٣Gi", None),
    ],
)  # fmt: skip
def test_quantities(text: Any, expected: Any) -> None:
    assert quantity(text) == expected


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (label_error, ["a", "a-b", "8b", "a" * 63], ["", "-a", "a-", "A", "a.b", "a" * 64, None, "é", "a\n"]),
        (subdomain_error, ["a.b", "a-b.c"], ["a.", ".a", "a.-b", "a_b"]),
        (label_key_error, ["a", "a.b/C_d", "x" * 63], ["", "a/", "A.B/c", "a/b/c", "x" * 64, "-a"]),
        (label_value_error, ["", "a", "A_b.c-d"], ["-a", "a/b", "a:b", 1, True]),
        (port_name_error, ["http", "http-metrics", "a1"], ["8000", "a--b", "metrics-endpoint", "-a", "A"]),
    ],
)  # fmt: skip
def test_grammars(grammar: Any, good: list[Any], bad: list[Any]) -> None:
    assert [grammar(one) for one in good] == [""] * len(good)
    assert [one for one in bad if not grammar(one)] == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in parsed YAML."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()  # fmt: skip
    return [path, *(way for key, below in inside for way in nodes(below, (*path, key)))][bool(not path):]  # fmt: skip


ALL = [*objects(BUNDLE), *objects(CUSTOM)]
WAYS = nodes(ALL)


@settings(max_examples=400)
@given(way=st.sampled_from(WAYS), value=ANYTHING)
def test_no_value_of_a_wrong_type_is_too_much(way: tuple[Any, ...], value: Any) -> None:
    found = copy.deepcopy(ALL)
    node: Any = found
    for key in way[:-1]:
        node = node[key]
    node[way[-1]] = value
    for problem in manifest_problems(found):
        assert problem.code
        assert problem.message


@settings(max_examples=50)
@given(order=st.permutations(range(len(objects()))), case=st.integers(0, 20))
def test_the_order_of_objects_does_not_matter(order: list[int], case: int) -> None:
    found = broken("Deployment", f"{VLLM}.env.0.value", case)
    shuffled = [found[index] for index in order]
    assert sorted(map(str, manifest_problems(shuffled))) == sorted(
        map(str, manifest_problems(found))
    )
