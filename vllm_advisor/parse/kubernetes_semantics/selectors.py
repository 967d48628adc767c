"""Selectors: a workload's own has to take its pods, another's has to take something."""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    Object,
    Remark,
    kind_of,
    mapping,
    namespace,
    selects,
)
from vllm_advisor.parse.kubernetes_semantics.ports import monitored_services

OWN = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
# Where a kind that is about pods says which; an empty selector of these takes all or is meant so.
ABOUT_PODS = {
    "PodDisruptionBudget": "spec.selector",
    "NetworkPolicy": "spec.podSelector",
    "PodMonitor": "spec.selector",
    "InferencePool": "spec.selector",
}


def own_selector(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """A selector that does not take the pods of its own template."""
    if kind_of(one) not in OWN:
        return
    selector = mapping(one, "spec", "selector")
    if not any(selector.values()):
        yield Remark("selector-without-pods", "spec.selector", "there is none")
        return
    for pod in bundle.pods:
        if pod.owner is one and not selects(selector, pod.labels):
            message = f"does not take the labels of its own pods, {dict(pod.labels)}"
            yield Remark("selector-without-pods", "spec.selector", message)


def selects_nothing(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """A Service, policy, budget, monitor or pool that is about no pods of the bundle."""
    kind = kind_of(one)
    if kind == "ServiceMonitor":
        found: list[object] = [*monitored_services(one, bundle)]
        path, selector = "spec.selector", mapping(one, "spec", "selector")
        reach = mapping(one, "spec", "namespaceSelector")
    else:
        path = "spec.selector" if kind == "Service" else ABOUT_PODS.get(kind, "")
        selector = mapping(one, *path.split("."))
        if kind == "Service":
            selector = {"matchLabels": selector} if selector else {}
        reach = mapping(one, "spec", "namespaceSelector") if kind == "PodMonitor" else {}
        found = [*bundle.selected(selector, namespace(one))]
    # What looks into other namespaces is not only about what is here.
    if path and any(selector.values()) and not found and not reach:
        what = "Service" if kind == "ServiceMonitor" else "pod"
        yield Remark("selector-without-pods", path, f"selects no {what} of the bundle")
