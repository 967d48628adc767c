"""Target ``envoy``: a configuration of Envoy that routes by the bytes of the body."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import LARGEST_PORT, Backend, is_ip
from vllm_advisor.render.byte_routing import (
    CONNECT_BECAUSE,
    CONNECT_SECONDS,
    ByteRouting,
    byte_routing,
    connections_because,
    head,
    instances_said,
    steps_said,
)
from vllm_advisor.render.byte_rules import Ladder, Step
from vllm_advisor.render.jinja import render_template
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.routing import INSTANCE_HEADER

TARGET = "envoy"
SIZE_HEADER = "x-vllm-body-bytes"  # between the count and the choice of a route; never goes on
_NO_END = (1 << 63) - 1  # of a range of header values: they are signed 64-bit integers
_MOST_RETRIES = 3


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``envoy/envoy.yaml``.

    Raises:
        OutputError: the plan has no policy, a server cannot be found, or the address to listen on
            is none.
    """
    routing = byte_routing(plan, engine)
    place = plan.environment
    if not is_ip(place.router_host):
        raise OutputError(
            f"Envoy listens on an IP address, and {place.router_host} is a name",
            where="environment.router_host",
            fix="--set router_host=0.0.0.0, or the address behind the name",
        )
    view = {
        "head": head(
            plan,
            routing,
            router="Envoy",
            needs="Envoy 1.40",
            asks_again=_asks_again,
            start=(
                "Start:  envoy -c envoy.yaml",
                "Check:  envoy --mode validate -c envoy.yaml",
            ),
        ),
        "host": place.router_host,
        "port": place.router_port,
        "admin_port": _admin_port(routing, place.router_port),
        "body_limit": routing.policy.byte_count.body_limit_bytes,
        "workload_header": routing.policy.header,
        "size_header": SIZE_HEADER,
        "instance_header": INSTANCE_HEADER,
        "matches": [
            match for ladder in _named_first(routing.ladders) for match in _matches(routing, ladder)
        ],
        "pools": [_pool_view(routing, step) for step in routing.steps],
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "connect_because": CONNECT_BECAUSE,
        "connections_because": connections_because(plan),
    }
    return (
        Artifact(path=f"{TARGET}/envoy.yaml", text=render_template("envoy/envoy.yaml.j2", view)),
    )


def _admin_port(routing: ByteRouting, own: int) -> int:
    """The first port after the router's own that no server has."""
    taken = {own, *(server.port for each in routing.servers.values() for server in each)}
    port = own
    while port in taken:
        port = port % LARGEST_PORT + 1
    return port


def _named_first(ladders: tuple[Ladder, ...]) -> tuple[Ladder, ...]:
    """The ladder without a name last: its routes match everything that is left."""
    return (*ladders[1:], ladders[0])


def _matches(routing: ByteRouting, ladder: Ladder) -> list[dict[str, Any]]:
    """Envoy's routes of a ladder, the most bytes first: the first that matches is taken."""
    named = ladder is not routing.ladders[0]
    said = steps_said(ladder)
    return [
        {
            "said": (f"{routing.policy.header}: {name}, " if named else "") + words,
            "name": name,
            "range": {"start": step.least, "end": _NO_END} if step.least else None,
            "pool": _pool_view(routing, step),
        }
        for name in (ladder.routes if named else ("",))
        for step, words in reversed(list(zip(ladder.steps, said, strict=True)))
    ]


def _pool_view(routing: ByteRouting, step: Step) -> dict[str, Any]:
    """A cluster: the instance's servers, and with lower priority those that stand in."""
    asks_again = _asks_again(step)
    servers = [server for name in step.instances for server in routing.servers[name]]
    spare = len(servers) - 1
    named = any(not is_ip(server.host) for server in servers)
    if asks_again:
        because = (
            f"Once, of {step.instances[1]}: where no connection is made, before the health check "
            f"has seen it, and where {step.instances[0]} says that the prompt is too long (400). "
            "Its other 400s are asked again too, and refused again."
        )
    else:
        because = "Where no connection is made, before the health check has seen it."
    return {
        "name": _pool_name(step),
        "title": f"Requests to {instances_said(step)}.",
        "type": "STRICT_DNS" if named else "STATIC",
        "overflow": step.overflow[:1],
        "asks_again": asks_again,
        "retry_on": "connect-failure,refused-stream,reset-before-request"
        + (",retriable-status-codes" if asks_again else ""),
        "retries": 1 if asks_again else min(spare, _MOST_RETRIES),
        "retries_because": because,
        "next_priority": len(step.instances) > 1,
        "priorities": [
            {"instance": name, "servers": [_server_view(s) for s in routing.servers[name]]}
            for name in step.instances
        ],
    }


def _asks_again(step: Step) -> bool:
    """A prompt that is refused as too long goes to who reads more.

    Envoy asks again only in the same cluster, so that has to be the one that stands in as well.
    """
    return bool(step.overflow) and step.instances[1:2] == step.overflow[:1]


def _pool_name(step: Step) -> str:
    """``chat+long-docs>long-docs``: who takes it, who stands in, who reads what is too long."""
    overflow = f">{'+'.join(step.overflow)}" if step.overflow else ""
    return f"{'+'.join(step.instances)}{overflow}"


def _server_view(server: Backend) -> dict[str, Any]:
    return {"address": server.host, "port_value": server.port}
