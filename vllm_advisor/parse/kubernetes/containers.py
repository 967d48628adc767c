"""A container of a pod: image, environment, resources, probes and rights with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal

from vllm_advisor.parse.container import Container, EnvVar, Probe, Resources, Security
from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.images import read_image
from vllm_advisor.parse.kubernetes.objects import PodSource
from vllm_advisor.parse.kubernetes.volumes import (
    mounts_of,
    pods_shared_memory,
    shared_memory_of,
)
from vllm_advisor.parse.kubernetes_semantics.resources import quantity
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.yaml_tree import YamlValue

_REFERENCES = {
    "secretKeyRef": "secret",
    "configMapKeyRef": "config-map",
    "fieldRef": "field",
    "resourceFieldRef": "field",
}


def container_of(view: YamlValue, pod: PodSource, objects: tuple[DeployedObject, ...]) -> Container:
    """The container at a place of a manifest."""
    image = view.at("image").placed_string()
    mounts = mounts_of(view.at("volumeMounts"), pod.spec.at("volumes"), pod.owner, objects)
    return Container(
        name=view.at("name").string(),
        location=view.location,
        image=read_image(image.value, image.location) if image else None,
        env=tuple(variable_of(one) for one in view.at("env").items() if one.mapping()),
        env_from=tuple(_sources(view.at("envFrom"))),
        resources=resources_of(view.at("resources")),
        shared_memory=shared_memory_of(mounts) or pods_shared_memory(pod),
        mounts=mounts,
        startup=probe_of(view.at("startupProbe"), "startup"),
        readiness=probe_of(view.at("readinessProbe"), "readiness"),
        liveness=probe_of(view.at("livenessProbe"), "liveness"),
        ports=tuple(
            port
            for one in view.at("ports").items()
            if (port := one.at("containerPort").placed_integer())
        ),
        security=security_of(view.at("securityContext"), pod.spec.at("securityContext")),
        pre_stop=_pre_stop(view.at("lifecycle", "preStop")),
    )


def resources_of(view: YamlValue) -> Resources:
    """Requests and limits; quantities that Kubernetes does not read are left out."""
    return Resources(
        location=view.location,
        requests=_quantities(view.at("requests")),
        limits=_quantities(view.at("limits")),
        claims=tuple(
            name for one in view.at("claims").items() if (name := one.at("name").placed_string())
        ),
    )


def probe_of(view: YamlValue, kind: Literal["startup", "readiness", "liveness"]) -> Probe | None:
    """A probe; None where there is none."""
    if not view.mapping():
        return None
    way = next((w for w in ("httpGet", "tcpSocket", "grpc", "exec") if view.at(w)), "")
    asked = view.at(way) if way else view
    path, port = asked.at("path").string(), asked.at("port").string()
    words = " ".join(word.string() for word in asked.at("command").items())
    return Probe(
        kind=kind,
        handler=" ".join(part for part in (way, words or f"{path}:{port}" if way else "") if part),
        path=path,
        port=port,
        initial_delay=view.at("initialDelaySeconds").placed_integer(),
        period=view.at("periodSeconds").placed_integer(),
        timeout=view.at("timeoutSeconds").placed_integer(),
        failures=view.at("failureThreshold").placed_integer(),
        location=view.location,
    )


def quantity_at(view: YamlValue) -> Placed[Fraction] | None:
    """A quantity with its place; None where there is none that Kubernetes reads."""
    if isinstance(view.value, Mapping | list):
        return None
    read = quantity(view.value)
    return None if read is None else Placed(read, view.location)


def _quantities(view: YamlValue) -> Mapping[str, Placed[Fraction]]:
    return {entry.key: read for entry in view.entries() if (read := quantity_at(entry)) is not None}


def variable_of(view: YamlValue) -> EnvVar:
    """One item of ``env``."""
    name = view.at("name").string()
    for key, source in _REFERENCES.items():
        reference = view.at("valueFrom", key)
        if reference:
            parts = ("name", "key") if source in ("secret", "config-map") else ("fieldPath",)
            text = "/".join(reference.at(part).string() for part in parts)
            return EnvVar(
                name=name, value=None, source=source, reference=text, location=view.location
            )
    value = view.at("value")
    return EnvVar(name=name, value=value.string(), source="value", location=view.location)


def _sources(view: YamlValue) -> Iterator[Placed[str]]:
    for one in view.items():
        for key, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
            if name := one.at(key, "name").string():
                yield Placed(f"{kind}/{name}", one.location)


def security_of(own: YamlValue, pod: YamlValue) -> Security:
    """The rights of a container: its own settings, and its pod's where it has none."""

    def integer(key: str) -> Placed[int] | None:
        return own.at(key).placed_integer() or pod.at(key).placed_integer()

    def boolean(key: str) -> Placed[bool] | None:
        return own.at(key).placed_boolean() or pod.at(key).placed_boolean()

    def names(key: str) -> tuple[Placed[str], ...]:
        return tuple(
            name
            for one in own.at("capabilities", key).items()
            if (name := one.placed_string()) is not None
        )

    return Security(
        run_as_user=integer("runAsUser"),
        run_as_group=integer("runAsGroup"),
        run_as_non_root=boolean("runAsNonRoot"),
        fs_group=pod.at("fsGroup").placed_integer(),
        read_only_root=boolean("readOnlyRootFilesystem"),
        privilege_escalation=boolean("allowPrivilegeEscalation"),
        privileged=boolean("privileged"),
        capabilities_added=names("add"),
        capabilities_dropped=names("drop"),
        location=own.location if own else pod.location,
    )


def _pre_stop(view: YamlValue) -> Placed[str] | None:
    if not view.mapping():
        return None
    words = " ".join(word.string() for word in view.at("exec", "command").items())
    seconds = view.at("sleep", "seconds").string()
    text = words or (f"sleep {seconds}" if seconds else view.at("httpGet", "path").string())
    return Placed(text, view.location)
