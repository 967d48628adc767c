"""Target ``nginx``: a configuration of nginx that routes by the bytes of the body."""

from __future__ import annotations

import ipaddress
from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import is_host, is_ip
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
from vllm_advisor.render.byte_rules import Step
from vllm_advisor.render.jinja import render_template
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.routing import INSTANCE_HEADER
from vllm_advisor.units import KIB

TARGET = "nginx"
_COMMAND = "nginx -p $PWD -c $PWD/nginx.conf"
_GOOD_TO_KNOW = (
    "It needs no root, stays in the foreground and makes its folders in that of -p. Host names are "
    "looked up when it starts: reload when their addresses change."
)
_LAST_PIECE = 64 * KIB  # more than nginx reads at once, so that no full buffer goes to a file


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``nginx/nginx.conf``.

    Raises:
        OutputError: the plan has no policy, a server cannot be found, or the address to listen on
            is none.
    """
    routing = byte_routing(plan, engine)
    places = _places(routing)
    body_limit = routing.policy.byte_count.body_limit_bytes
    view = {
        "head": head(
            plan,
            routing,
            router="nginx",
            needs="nginx 1.25.1 or later, no further modules",
            asks_again=lambda step: bool(step.overflow),
            start=(
                f"Start:   {_COMMAND}",
                f"Check:   {_COMMAND} -t",
                f"Reload:  {_COMMAND} -s reload",
                _GOOD_TO_KNOW,
            ),
        ),
        "listen": _listen(plan),
        "body_limit": str(body_limit),
        "body_buffer": str(body_limit + _LAST_PIECE),
        "workload_variable": "http_" + routing.policy.header.replace("-", "_"),
        "instance_header": INSTANCE_HEADER,
        "ladders": [
            {
                "number": str(number),
                "said": "; ".join(steps_said(ladder)),
                "routes": ladder.routes,
                "first": _place_name(ladder.steps[0]),
                "steps": [
                    {"pattern": f"~{more_than(step.least - 1)}", "place": _place_name(step)}
                    for step in reversed(ladder.steps[1:])
                ],
            }
            for number, ladder in enumerate(routing.ladders)
        ],
        "places": places,
        "upstreams": [
            {
                "name": name,
                "servers": [server.address for server in routing.servers[name]],
                # Where nobody stands in, a server that was down is tried by every request.
                "twice": len(routing.servers[name]) == 1
                and any(p["stand_in"] for p in places if p["instance"] == name),
            }
            for name in dict.fromkeys(place["instance"] for place in places)
        ],
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "connect_because": CONNECT_BECAUSE,
        "connections_because": connections_because(plan),
    }
    text = render_template("nginx/nginx.conf.j2", view)
    return (Artifact(path=f"{TARGET}/nginx.conf", text=text),)


def more_than(limit: int) -> str:
    """A regular expression that matches decimal numbers above ``limit``, whatever zeros lead.

    One more digit, or as many: the same first ones, a larger one, and any others.
    """
    digits = str(limit)
    ways = [f"[1-9][0-9]{{{len(digits)},}}"]
    for at, digit in enumerate(digits):
        if digit != "9":
            larger = f"[{int(digit) + 1}-9]" if digit != "8" else "9"
            rest = len(digits) - at - 1
            ways.append(digits[:at] + larger + (f"[0-9]{{{rest}}}" if rest else ""))
    return f"^0*({'|'.join(ways)})$"


def _listen(plan: Plan) -> str:
    place = plan.environment
    if not is_host(place.router_host):
        raise OutputError(
            f"{place.router_host!r} is no address to listen on",
            where="environment.router_host",
            fix="--set router_host=0.0.0.0",
        )
    six = is_ip(place.router_host) and ipaddress.ip_address(place.router_host).version == 6
    host = f"[{place.router_host}]" if six else place.router_host
    return f"{host}:{place.router_port}"


def _places(routing: ByteRouting) -> list[dict[str, Any]]:
    """The named locations: one for each step, and one for each instance that may come after."""
    waiting = list(routing.steps)
    found: dict[str, Step] = {}
    while waiting:
        step = waiting.pop(0)
        if _place_name(step) not in found:
            found[_place_name(step)] = step
            waiting += _after(step)
    return [
        {
            "name": name,
            "number": str(number),
            "title": f"Requests to {instances_said(step)}.",
            "instance": step.instances[0],
            "stand_in": _place_name(_stand_in(step)) if len(step.instances) > 1 else "",
            "overflow": _place_name(_overflow(step)) if step.overflow else "",
            "overflow_instance": step.overflow[0] if step.overflow else "",
        }
        for number, (name, step) in enumerate(found.items())
    ]


def _after(step: Step) -> list[Step]:
    return [
        *([_stand_in(step)] if len(step.instances) > 1 else []),
        *([_overflow(step)] if step.overflow else []),
    ]


def _stand_in(step: Step) -> Step:
    """What is left when the first instance is down; a refusal of those is the client's."""
    return Step(least=step.least, instances=step.instances[1:])


def _overflow(step: Step) -> Step:
    """Where a prompt goes that the first instance refuses as too long."""
    return Step(least=step.least, instances=step.overflow)


def _place_name(step: Step) -> str:
    """``@chat+long-docs>long-docs``: who takes it, who stands in, who reads what is too long."""
    overflow = f">{'+'.join(step.overflow)}" if step.overflow else ""
    return f"@{'+'.join(step.instances)}{overflow}"
