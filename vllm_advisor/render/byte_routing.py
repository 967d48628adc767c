"""What the routers that count bytes have in common: their rules, their servers, their limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import Backend, backends
from vllm_advisor.render.byte_rules import Ladder, Step, ladders, thresholds
from vllm_advisor.render.pod import common_names
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import RouterPlace
from vllm_advisor.types.plan import Plan
from vllm_advisor.types.routing import INSTANCE_HEADER, RoutingPolicy
from vllm_advisor.version import __version__

CONNECT_SECONDS = 2
CONNECT_BECAUSE = (
    f"{CONNECT_SECONDS} s for a connection: servers are near, and a request waits that long for a "
    "host that is gone."
)
_LIMITS = (
    (
        "- The JSON around a prompt counts, its escapes count (an escaped letter takes 6 bytes), "
        "and so do images in it: a picture makes a short prompt look long."
    ),
    (
        "- Nothing is counted in tokens, retrieved or shortened here. Retrieval is the "
        "application's; vllm_advisor.routing in the application, or the target litellm, counts."
    ),
)
_PATHS = (
    "Only paths under /v1/ are passed on: vLLM's API key guards no others. /health is answered "
    "here, and says that the router runs. It speaks plain HTTP: put TLS in front where the network "
    "is not yours, or keys and prompts travel in clear text."
)
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_HEADER = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRouting:
    """Everything that is checked and computed before a router's file is written."""

    policy: RoutingPolicy
    ladders: tuple[Ladder, ...]
    servers: dict[str, tuple[Backend, ...]]
    model: str

    @property
    def steps(self) -> tuple[Step, ...]:
        """What differs in who is asked, each once."""
        found = {
            (step.instances, step.overflow): step
            for ladder in self.ladders
            for step in ladder.steps
        }
        return tuple(found.values())


def byte_routing(plan: Plan, engine: EngineFacts) -> ByteRouting:
    """The rules of a plan and the servers they lead to.

    Raises:
        OutputError: the plan has no policy, a server cannot be found or is reached by TLS, or the
            instances have no name of their model in common.
    """
    policy = plan.routing
    if policy is None:
        raise OutputError(
            "the plan has no routing policy: nothing says which prompts go where",
            where="plan.routing",
            fix="plan again with this version: vllm-advisor plan WORKLOAD --output-dir DIR",
        )
    _check_names(plan, policy)
    servers = backends(plan, engine)
    for name, found in servers.items():
        if any(server.scheme != "http" for server in found):
            raise OutputError(
                f"servers of {name} are reached by https, which this target does not speak",
                where=f"environment.instance_urls.{name}",
                fix="give http:// URLs of a network that you trust, or use the target litellm",
            )
    return ByteRouting(
        policy=policy, ladders=ladders(policy), servers=servers, model=_model(plan, policy)
    )


def head(
    plan: Plan,
    routing: ByteRouting,
    *,
    router: str,
    needs: str,
    asks_again: Callable[[Step], bool],
    start: tuple[str, ...],
) -> list[str]:
    """What is said at the top: what it is, what clients send, what it cannot do, how to start it.

    Each entry is a paragraph; those that start with ``- `` are a list. ``asks_again`` tells of
    which steps a prompt that was refused as too long goes to the next instance.
    """
    policy = routing.policy
    title = (
        f"Router for the plan {plan.name}, for vLLM {plan.vllm_version}, made for {needs}; written "
        f"by vllm-advisor {__version__}. PLAN.md has the whole reasoning."
    )
    return [
        title,
        "",
        f"{router} sends requests to instances by the bytes of their bodies. Bytes are no tokens:",
        *_numbers(policy),
        *_denser(routing, asks_again),
        *_LIMITS,
        "",
        f"Clients ask for the model {routing.model}, the name that every instance answers to.",
        *_header_values(routing),
        f"The answer says in {INSTANCE_HEADER} which instance gave it.",
        "",
        _PATHS,
        "",
        *start,
    ]


def steps_said(ladder: Ladder) -> list[str]:
    """The steps of a ladder in words, one each."""
    ends = [f"up to {after.least - 1:,} bytes" for after in ladder.steps[1:]]
    last = "all longer ones" if ends else "all bodies"
    return [
        f"{end} to {instances_said(step)}"
        for step, end in zip(ladder.steps, [*ends, last], strict=True)
    ]


def instances_said(step: Step) -> str:
    """Who takes a body, in words."""
    first, *others = step.instances
    return first + (f" (while it is down, to {', then '.join(others)})" if others else "")


def connections_because(plan: Plan) -> str:
    """Why a connection is used once."""
    reason = (
        "A connection for each request: vLLM closes idle ones after 5 s, and a request that meets "
        "the close is lost."
    )
    if plan.environment.router_place is RouterPlace.KUBERNETES:
        reason += " A Service spreads connections over its pods, not requests."
    return reason


def _numbers(policy: RoutingPolicy) -> list[str]:
    count = policy.byte_count
    assumed = (
        f"{count.bytes_per_token:g} bytes a token, {count.margin:.0%} more or less, with its JSON"
    )
    lines = [
        f"- Bodies of up to {one.most_bytes:,} bytes go to {one.route}. At {assumed}: prompts of "
        f"up to {one.surely:,} tokens surely do, prompts of more than {one.at_most:,} tokens "
        f"surely go to {one.next_route}, and in between the text decides."
        for one in thresholds(policy)
    ]
    return lines or ["- All lengths go to one instance: no limit in bytes is needed."]


def _denser(routing: ByteRouting, asks_again: Callable[[Step], bool]) -> list[str]:
    """What becomes of text that has fewer bytes a token than assumed."""
    found = dict.fromkeys(
        f"where {step.instances[0]} refuses it as too long (400), "
        + (
            f"{step.overflow[0]} is asked as well, and answers"
            if asks_again(step)
            else "the client gets that refusal"
        )
        for step in routing.steps
        if step.overflow
    )
    text = "- Text with fewer bytes a token (figures, some scripts) may go to an instance that is "
    return [f"{text}too small for it: {'; '.join(found)}."] if found else []


def _header_values(routing: ByteRouting) -> list[str]:
    """What the header does, ladder by ladder."""
    first, *others = routing.ladders
    header = routing.policy.header
    lines = []
    if first.routes:
        lines.append(
            f"{header}: {' or '.join(first.routes)} changes nothing: the length decides, as it "
            "does without the header and with a value that is no route."
        )
    lines += [
        f"{header}: {' or '.join(ladder.routes)} sends {'; '.join(steps_said(ladder))}."
        for ladder in others
    ]
    return lines


def _check_names(plan: Plan, policy: RoutingPolicy) -> None:
    """No name can be anything but a name, in any file; every instance is one of the plan."""
    instances = [instance.name for instance in plan.deployment.instances]
    for route in policy.routes:
        for name in (route.name, route.instance):
            if not _NAME.fullmatch(name):
                raise OutputError(
                    f"{name!r} cannot stand in a router's file",
                    where=f"routing.{route.name}"[:80],
                    fix="use lower-case letters, digits and inner dashes, at most 63",
                )
        if route.instance not in instances:
            raise OutputError(
                f"the route {route.name} leads to {route.instance}, which is no instance",
                where=f"routing.{route.name}",
                fix=f"the plan has: {', '.join(instances)}; plan again",
            )
    if not _HEADER.fullmatch(policy.header):
        raise OutputError(
            f"{policy.header!r} is no header that routers can look at",
            where="routing.header",
            fix="use lower-case letters, digits and inner dashes, at most 63",
        )


def _model(plan: Plan, policy: RoutingPolicy) -> str:
    """The name that clients ask for, whichever instance answers."""
    names = common_names(plan)
    if not names:
        raise OutputError(
            "the instances have no served model name in common, and a client cannot know which of "
            "them is going to answer",
            where="deployment.instances",
            fix="use the target litellm, which gives each instance the name it answers to",
        )
    return policy.model if policy.model in names else names[0]
