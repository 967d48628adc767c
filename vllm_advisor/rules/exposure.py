"""Ways into a server from outside of its cluster or host, as far as the source has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vllm_advisor.parse.compose.variables import text_at
from vllm_advisor.parse.deployed import DeployedObject, Pod
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.types.decision import Location

_KEY = "VLLM_API_KEY"
_EVERY_PATH = ("", "/", "/*", "/.*", "/(.*)", "/()(.*)")
_ANYWHERE = ("", "0.0.0.0", "[::]", "::")  # noqa: S104 - read, not bound
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIMIT_PATH = "forward /v1 only: path: /v1 with pathType: Prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A way in to every path of a server; ``how`` begins a sentence."""

    how: str
    location: Location
    fix: str


def has_key(subject: Subject) -> bool:
    """Whether the server asks for an API key, wherever that comes from."""
    if subject.args.get("api_key") or any(u.dest == "api_key" for u in subject.command.unresolved):
        return True
    container = subject.instance.container if subject.instance else None
    return _KEY in subject.command.env or bool(container and container.variable(_KEY))


def exposures(subject: Subject) -> list[Exposure]:
    """Every way in, in the order of the source's objects."""
    instance, deployed = subject.instance, subject.deployed
    if instance is None or deployed is None or subject.args.get("headless"):
        return []
    found: list[Exposure] = []
    if instance.kind == "compose":
        for one in deployed.objects:
            if one.location == instance.location:
                found += _published(one)
    pod = instance.pod
    if pod is None or pod.policies:
        return found
    if subject.args.get("host", "") not in _LOOPBACK:
        found += _host_network(pod)
    names = {(one.namespace, one.name) for one in pod.services}
    found += (way for one in pod.services for way in _service(one))
    for one in deployed.of_kind("Ingress", "HTTPRoute"):
        behind = {name for namespace, name in names if namespace == one.namespace}
        found += _ingress(one, behind) if one.kind == "Ingress" else _route(one, behind)
    return found


def _published(one: DeployedObject) -> Iterator[Exposure]:
    """Ports of a Compose service: HOST:PUBLISHED:TARGET, all addresses where HOST is left out."""
    for port in one.view.at("ports").items():
        if port.mapping():
            host = text_at(port.at("host_ip"))
            address, published = host.text if host else "", bool(port.at("published"))
        else:
            text = text_at(port)
            parts = text.text.rsplit(":", 2) if text and not text.unresolved else []
            address = parts[0] if len(parts) == 3 else ""
            published = len(parts) > 1
        if published and address in _ANYWHERE:
            yield Exposure(
                how=f"a port of service {one.name} on all addresses of the host",
                location=port.location,
                fix="publish it on loopback (127.0.0.1:PORT:PORT), behind a proxy that forwards "
                "/v1 only",
            )


def _host_network(pod: Pod) -> Iterator[Exposure]:
    if pod.host_network is not None and pod.host_network.value:
        yield Exposure(
            how="hostNetwork",
            location=pod.host_network.location,
            fix="leave hostNetwork out, or let a NetworkPolicy or the node's firewall admit the "
            "proxy that forwards /v1 and nobody else",
        )


def _service(one: DeployedObject) -> Iterator[Exposure]:
    kind = one.view.at("spec", "type")
    if kind.string() not in ("LoadBalancer", "NodePort"):
        return
    if one.view.at("spec", "loadBalancerSourceRanges").value or _says(one, "internal"):
        return
    yield Exposure(
        how=f"Service {one.name} of type {kind.string()}",
        location=kind.location,
        fix="type: ClusterIP, behind an Ingress or Gateway that forwards /v1 only",
    )


def _ingress(one: DeployedObject, services: set[str]) -> Iterator[Exposure]:
    if _says(one, "auth"):
        return
    spec = one.view.at("spec")
    if spec.at("defaultBackend", "service", "name").string() in services:
        yield _open(one, spec.at("defaultBackend"))
    for host in spec.at("rules").items():
        for path in host.at("http", "paths").items():
            behind = path.at("backend", "service", "name").string() in services
            if behind and path.at("path").string() in _EVERY_PATH:
                yield _open(one, path.at("path"))


def _route(one: DeployedObject, services: set[str]) -> Iterator[Exposure]:
    for rule in one.view.at("spec", "rules").items():
        backends = [
            ref.at("name").string()
            for ref in rule.at("backendRefs").items()
            if ref.at("kind").string() in ("", "Service")
        ]
        if not services & set(backends):
            continue
        matches = list(rule.at("matches").items()) or [rule]
        for match in matches:
            if match.at("path", "value").string() in _EVERY_PATH:
                yield _open(one, match)
                break


def _open(one: DeployedObject, place: YamlValue) -> Exposure:
    how = f"{one.kind} {one.name}".strip()
    return Exposure(how=how, location=place.location, fix=_LIMIT_PATH)


def _says(one: DeployedObject, word: str) -> bool:
    """Whether an annotation speaks of something: authentication, an internal load balancer."""
    return any(
        word in note.key.lower() or word == note.string().lower()
        for note in one.view.at("metadata", "annotations").entries()
    )
