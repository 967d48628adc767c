"""Target ``routing``: the policy as ``routing.yaml``, which is written with every plan.

It is what ``vllm_advisor.routing.Router`` loads, and what every router's own file is rendered from.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.jinja import render_template
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.routing import Bound, PolicyRoute, RoutingPolicy
from vllm_advisor.version import __version__

TARGET = "routing"
FILE = "routing.yaml"
SCHEMA_VERSION = "1"
BOUNDS = {
    Bound.LENGTH: "max_model_len less the longest answer of its classes",
    Bound.CAPACITY: "its KV cache: longer prompts would not fit at the planned concurrency",
    Bound.SLO: "the target for the first token: no GPU of this type reads a longer prompt in time",
}


def policy_of(plan: Plan) -> RoutingPolicy:
    """The plan's policy.

    Raises:
        OutputError: the plan has none.
    """
    if plan.routing is None:
        raise OutputError(
            "the plan has no routing policy",
            where="routing_policy",
            fix="plan again with this version: vllm-advisor plan WORKLOAD --output-dir DIR",
        )
    return plan.routing


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``routing.yaml``.

    Raises:
        OutputError: the plan has no routing policy.
    """
    del engine
    return (render_policy(policy_of(plan)),)


def render_policy(policy: RoutingPolicy) -> Artifact:
    """The policy with its reasons as comments; it loads back to exactly the policy."""
    data = policy.to_dict()
    view = {
        "version": __version__,
        "policy": policy,
        "head": {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "vllm-advisor", "version": __version__},
            **{key: data[key] for key in ("plan", "model", "header", "by_length")},
        },
        "order": _order(policy),
        "routes": [
            {"because": _because(route, policy), "data": data["routes"][index]}
            for index, route in enumerate(policy.routes)
        ],
        "rest": {
            key: data[key]
            for key in ("classes", "retrieval", "conversation", "byte_count", "prices", "costs")
        },
        "surely": _surely(policy),
    }
    return Artifact(path=FILE, text=render_template("routing/routing.yaml.j2", view))


def _order(policy: RoutingPolicy) -> list[str]:
    """The rules in words, in the order in which they are tried."""
    first = policy.route(policy.by_length[0])
    lines = [
        f"A prompt of at most {first.max_prompt_tokens:,} tokens goes to {first.name}.",
    ]
    if policy.retrieval is not None:
        lines.append(
            f"A longer one that passages can answer (needs: lookup) is retrieved: "
            f"{policy.retrieval.prompt_tokens:,} tokens to {policy.retrieval.route}"
            + (
                f", and the whole document to {policy.retrieval.fallback} where they do not answer."
                if policy.retrieval.fallback
                else "."
            )
        )
    if policy.conversation is not None:
        lines.append(
            "A longer one with a history that may lose its past is shortened: the last "
            f"{policy.conversation.keep_last_turns} turns and a summary."
        )
    lines += [
        f"Any other of at most {policy.route(name).max_prompt_tokens:,} tokens goes to {name}."
        for name in policy.by_length[1:]
    ]
    lines.append("What is longer is refused: no instance of the plan reads it.")
    pinned = [each.name for each in policy.classes if each.pinned]
    if pinned:
        lines.append(f"Classes that always go where the plan puts them: {', '.join(pinned)}.")
    lines.append(f"A request that names a route in the header {policy.header} starts at that one.")
    lines.append(
        "What is reserved for the answer is the longest of the route's classes: vLLM does not "
        "refuse a longer max_tokens, it cuts the answer off at the end of max_model_len."
    )
    return lines


def _because(route: PolicyRoute, policy: RoutingPolicy) -> str:
    text = f"{route.name}: {route.reason}. Bound by {BOUNDS[route.bound_by]}."
    if route.on_outage:
        other = policy.route(route.on_outage)
        text += f" While {route.instance} does not answer, {other.instance} stands in."
    return text


def _surely(policy: RoutingPolicy) -> str:
    """What the byte threshold of the first route means in tokens."""
    count, first = policy.byte_count, policy.route(policy.by_length[0])
    low, high = (count.bytes_per_token * (1 + sign * count.margin) for sign in (-1, 1))
    below = int(first.max_prompt_bytes / high)
    return (
        f"At {low:g} to {high:g} bytes per token, prompts of up to {below:,} tokens surely go to "
        f"{first.name} by their bytes, and those above {first.max_prompt_tokens:,} surely do not; "
        "between the two it depends on the text."
    )


def routing_view(policy: RoutingPolicy) -> dict[str, Any]:
    """What people are shown of a policy: routes, limits, fallbacks and the cost of each way."""
    return {
        "order": _order(policy),
        "routes": [
            {
                "name": route.name,
                "instance": route.instance,
                "max_prompt_tokens": route.max_prompt_tokens,
                "bound_by": BOUNDS[route.bound_by],
                "on_overflow": route.on_overflow or "refused",
                "on_outage": route.on_outage or "nobody",
            }
            for route in policy.routes
        ],
        "ways": [
            {
                "request_class": cost.request_class,
                "way": way,
                "usd": "unknown" if way.usd is None else f"{way.usd:.6f}",
            }
            for cost in policy.costs
            for way in cost.ways
        ],
    }
