"""Where a router finds the servers of each instance."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vllm_advisor.errors import OutputError
from vllm_advisor.render.kustomization import SERVICE_PORT
from vllm_advisor.render.names import dns_label, object_name
from vllm_advisor.render.placement import Replica, place_replicas
from vllm_advisor.render.pod import port_of
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import RouterPlace
from vllm_advisor.types.plan import Instance, Plan

_LOOPBACK = "127.0.0.1"
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
LARGEST_PORT = 65_535
_GIVE_URLS = "--set 'instance_urls={%s: [\"http://10.0.0.5:8000\"]}' says where its servers are"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One server as a router connects to it; ``host`` is a name or an IP without brackets.

    Every part is checked: none can be anything but what it is called, in any file.
    """

    host: str
    port: int
    scheme: str = "http"

    def __post_init__(self) -> None:
        if self.scheme not in _DEFAULT_PORTS:
            raise ValueError(f"{self.scheme!r} is no scheme that a router speaks")
        if not is_host(self.host):
            raise ValueError(f"{self.host!r} is no host name and no IP address")
        if not 1 <= self.port <= LARGEST_PORT:
            raise ValueError(f"{self.port} is no port")

    @property
    def address(self) -> str:
        """``host:port``, an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL: no path, no slash at the end."""
        return f"{self.scheme}://{self.address}"


def backends(plan: Plan, engine: EngineFacts) -> dict[str, tuple[Backend, ...]]:
    """The servers of each instance, in the plan's order; ``instance_urls`` win.

    On Kubernetes that is one Service for each instance, else one server for each replica.

    Raises:
        OutputError: nothing says where the servers of an instance are, or a URL is none.
    """
    place = plan.environment
    given = place.instance_urls
    names = [instance.name for instance in plan.deployment.instances]
    for name in given:
        if name not in names:
            raise OutputError(
                f"instance_urls names {name!r}, which is no instance of the plan",
                where="environment.instance_urls",
                fix=f"use: {', '.join(names)}",
            )
    found = {name: _given(name, urls) for name, urls in given.items()}
    others = [i for i in plan.deployment.instances if i.name not in found]
    if others:
        if place.router_place is RouterPlace.KUBERNETES:
            found |= {i.name: (_service(plan, i),) for i in others}
        else:
            found |= _replicas(plan, engine, others)
    return {name: found[name] for name in names}


def is_host(text: str) -> bool:
    """It is an IP address or a host name in lower case."""
    return is_ip(text) or (
        _NAME.fullmatch(text) is not None
        and len(text) <= 253
        and not text.rpartition(".")[2].isdecimal()  # then it was meant to be an IPv4 address
    )


def is_ip(text: str) -> bool:
    """It is an IPv4 or IPv6 address, without brackets or a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def parse_url(url: str) -> Backend:
    """The server of a base URL.

    Raises:
        ValueError: it is no ``http://host:port`` or ``https://host:port``.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(f"{url!r} is no URL of the form http://host:port")
    scheme, host, port = match.groups()
    return Backend(
        scheme=scheme,
        host=host.strip("[]"),
        port=int(port) if port else _DEFAULT_PORTS[scheme],
    )


def _given(instance: str, urls: Iterable[str]) -> tuple[Backend, ...]:
    try:
        made = tuple(dict.fromkeys(parse_url(url) for url in urls))
    except ValueError as error:
        raise OutputError(
            str(error),
            where=f"environment.instance_urls.{instance}",
            fix="write where the server listens, without a path: http://10.0.0.5:8000",
        ) from None
    if not made:
        raise OutputError(
            f"instance_urls has no URL for {instance}",
            where=f"environment.instance_urls.{instance}",
            fix=_GIVE_URLS % instance,
        )
    return made


def _service(plan: Plan, instance: Instance) -> Backend:
    """Its Service; by its whole name where a namespace is given, so from any namespace."""
    space = plan.environment.namespace
    scope = f".{space}.svc" if space else ""
    return Backend(host=f"{object_name(plan, instance)}{scope}", port=SERVICE_PORT)


def _replicas(
    plan: Plan, engine: EngineFacts, instances: list[Instance]
) -> Mapping[str, tuple[Backend, ...]]:
    """One server for each replica, on this host or in this Compose project."""
    placed = place_replicas(plan, engine)
    in_compose = plan.environment.router_place is RouterPlace.COMPOSE
    made = {}
    for instance in instances:
        own = [each for each in placed if each.instance == instance.name]
        if any(each.node + each.nodes > 1 for each in own):
            raise OutputError(
                f"replicas of {instance.name} run on other nodes, whose addresses no plan knows",
                where="environment.instance_urls",
                fix=_GIVE_URLS % instance.name,
            )
        made[instance.name] = tuple(
            Backend(host=f"{dns_label(instance.name)}-{number}", port=port_of(instance, engine))
            if in_compose
            else _on_this_host(plan, each)
            for number, each in enumerate(own, 1)
        )
    return made


def _on_this_host(plan: Plan, replica: Replica) -> Backend:
    if replica.port is None:
        raise OutputError(
            f"neither the plan nor this vLLM says on which port {replica.instance} listens",
            where="environment.instance_urls",
            fix=_GIVE_URLS % replica.instance,
        )
    if replica.port == plan.environment.router_port:
        raise OutputError(
            f"the router and a server of {replica.instance} would both listen on port "
            f"{replica.port}",
            where="environment.router_port",
            fix="--set router_port=4001 names another one",
        )
    return Backend(host=_LOOPBACK, port=replica.port)
