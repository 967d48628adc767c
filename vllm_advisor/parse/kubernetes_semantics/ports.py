"""Ports that are named or numbered where no container declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    Object,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    mapping,
    namespace,
    selects,
)

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
HOOKS = ("postStart", "preStop")


def probes(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Probes and hooks of a container that ask a port it does not declare."""
    for path, container in pod.containers():
        declared = [port for _, port in entries(container, "ports")]
        asked = [(f"{path}.{key}", mapping(container, key)) for key in PROBES]
        asked += [
            (f"{path}.lifecycle.{key}", mapping(container, "lifecycle", key)) for key in HOOKS
        ]
        if pod.partial and not declared:
            continue
        for at, probe in asked:
            for way in ("httpGet", "tcpSocket", "grpc"):
                yield from _undeclared(
                    f"{at}.{way}.port", mapping(probe, way).get("port"), declared
                )


def service_ports(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """A Service's targets, and its names where it has several ports."""
    if kind_of(one) != "Service":
        return
    spec = mapping(one, "spec")
    pods = bundle.selected({"matchLabels": mapping(spec, "selector")}, namespace(one))
    declared = [port for pod in pods for port in pod.declared_ports()]
    sure = bool(mapping(spec, "selector")) and pods and not any(pod.partial for pod in pods)
    names = [port.get("name") for _, port in entries(spec, "ports")]
    for path, port in entries(spec, "ports", prefix="spec."):
        target = port.get("targetPort", port.get("port"))
        if sure:
            yield from _undeclared(f"{path}.targetPort", target, declared)
        if len(names) > 1 and (not port.get("name") or names.count(port["name"]) > 1):
            message = "each port of several needs a name of its own"
            yield Remark("name-repeated", f"{path}.name", message)


def monitor_ports(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """What a PodMonitor scrapes of pods, and a ServiceMonitor of Services."""
    kind, spec = kind_of(one), mapping(one, "spec")
    if kind == "PodMonitor":
        pods = bundle.selected(mapping(spec, "selector"), namespace(one))
        if not pods or any(pod.partial for pod in pods):
            return
        declared = [port for pod in pods for port in pod.declared_ports()]
        for path, end in entries(spec, "podMetricsEndpoints", prefix="spec."):
            for key in ("port", "targetPort", "portNumber"):
                yield from _undeclared(f"{path}.{key}", end.get(key), declared)
    elif kind == "ServiceMonitor":
        services = monitored_services(one, bundle)
        names = [
            port.get("name")
            for each in services
            for _, port in entries(mapping(each, "spec"), "ports")
        ]
        for path, end in entries(spec, "endpoints", prefix="spec."):
            if services and "port" in end and end["port"] not in names:
                message = f"no selected Service has a port named {end['port']!r}"
                yield Remark("port-not-declared", f"{path}.port", message)


def monitored_services(monitor: Object, bundle: Bundle) -> list[Object]:
    """The Services that a ServiceMonitor selects by their own labels."""
    selector = mapping(monitor, "spec", "selector")
    return [
        each
        for each in bundle.objects
        if kind_of(each) == "Service"
        and namespace(each) == namespace(monitor)
        and selects(selector, mapping(each, "metadata", "labels"))
    ]


def policy_ports(one: Object, bundle: Bundle) -> Iterator[Remark]:
    """Ports a NetworkPolicy opens on the pods that it is about."""
    if kind_of(one) != "NetworkPolicy":
        return
    pods = bundle.selected(mapping(one, "spec", "podSelector"), namespace(one))
    declared = [port for pod in pods for port in pod.declared_ports()]
    if not pods or any(pod.partial for pod in pods):
        return
    for path, rule in entries(mapping(one, "spec"), "ingress", prefix="spec."):
        for at, port in entries(rule, "ports", prefix=f"{path}."):
            if "endPort" not in port:  # a range need not be of ports that a container has
                yield from _undeclared(f"{at}.port", port.get("port"), declared)


def _undeclared(path: str, port: Any, declared: Collection[Mapping[str, Any]]) -> Iterator[Remark]:
    """A name that no port has is an error. A number need not be declared: a mistake, or untidy."""
    if isinstance(port, str) and port not in [one.get("name") for one in declared]:
        yield Remark("port-not-declared", path, f"no container port is named {port!r}")
    numbers = [one.get("containerPort") for one in declared]
    if isinstance(port, int) and declared and port not in numbers:
        yield Remark("port-number-not-declared", path, f"no container declares port {port}")
