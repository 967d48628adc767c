"""Target ``litellm``: a configuration of LiteLLM's proxy, which counts the tokens of a prompt.

A public name is a group of deployments: those of its route first (``order`` 1), then those of the
routes that take what is too long for it. Pre-call checks drop deployments whose
``max_input_tokens`` a prompt exceeds; the lowest order that is left is asked.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import Backend, backends
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.pod import served_names
from vllm_advisor.render.routing import policy_of
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.routing import PolicyRoute, RoutingPolicy
from vllm_advisor.version import __version__

TARGET = "litellm"
VERSION = "1.106.12"  # which the tests run
_DEFAULT = "default"  # LiteLLM's tag of what takes requests without a tag
_BY_LENGTH = "by-length"


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``litellm/config.yaml``.

    Raises:
        OutputError: the plan has no routing policy, its servers' addresses are not known, or its
            instances have no model name in common.
    """
    policy = policy_of(plan)
    servers = backends(plan, engine)
    _check_names(plan, policy)
    chain = [policy.route(name) for name in policy.by_length]
    groups = [_group(plan, policy, servers, policy.model, chain)]
    groups += [
        _group(plan, policy, servers, route.name, policy.overflow_chain(route))
        for route in policy.routes
    ]
    names = {group["name"] for group in groups}
    longer = [group for group in groups if len(group["routes"]) > 1]
    settings: dict[str, Any] = {
        "enable_pre_call_checks": True,
        "enable_tag_filtering": True,
        "num_retries": 2,
    }
    aliases = {each.name: each.route for each in policy.classes if each.name not in names}
    if aliases:
        settings["model_group_alias"] = aliases
    if longer:
        last = policy.by_length[-1]
        settings["context_window_fallbacks"] = [{group["name"]: [last]} for group in longer]
    view = {
        "plan": plan.name,
        "tool_version": __version__,
        "vllm_version": plan.vllm_version,
        "litellm_version": VERSION,
        "port_text": str(plan.environment.router_port),
        "host": plan.environment.router_host,
        "policy": policy,
        "groups": groups,
        "settings": settings,
        "api_key": plan.environment.api_key_secret is not None,
        "retrieved": [each.name for each in policy.classes if each.retrieve],
        "pinned": [each for each in policy.classes if each.pinned],
    }
    text = render_template("litellm/config.yaml.j2", view)
    return (Artifact(path=f"{TARGET}/config.yaml", text=text),)


def deployment_id(group: str, instance: str, number: int) -> str:
    """``<group>:<instance>-<n>``: LiteLLM answers with it in the header x-litellm-model-id."""
    return f"{group}:{instance}-{number}"


def _group(
    plan: Plan,
    policy: RoutingPolicy,
    servers: dict[str, tuple[Backend, ...]],
    name: str,
    chain: list[PolicyRoute],
) -> dict[str, Any]:
    """The deployments behind one public name, in the order in which their routes are asked."""
    by_length = name == policy.model
    key = "os.environ/VLLM_API_KEY" if plan.environment.api_key_secret is not None else "none"
    deployments = []
    for order, route in enumerate(chain, 1):
        served = policy.model if by_length else _served(plan, route)
        for number, server in enumerate(servers[route.instance], 1):
            params: dict[str, Any] = {
                "model": f"hosted_vllm/{served}",
                "api_base": f"{server.url}/v1",
                "api_key": key,
                "order": order,
            }
            if by_length:
                params["tags"] = [_DEFAULT, *_tags(policy, route)]
            deployments.append(
                {
                    "model_name": name,
                    "litellm_params": params,
                    "model_info": {
                        "id": deployment_id(
                            _BY_LENGTH if by_length else name, route.instance, number
                        ),
                        "max_input_tokens": route.max_prompt_tokens,
                    },
                }
            )
    return {"name": name, "routes": chain, "by_length": by_length, "deployments": deployments}


def _tags(policy: RoutingPolicy, route: PolicyRoute) -> list[str]:
    """Routes whose requests may end at this one's instance."""
    return [
        each.name
        for each in policy.routes
        if route.instance in {longer.instance for longer in policy.overflow_chain(each)}
    ]


def _served(plan: Plan, route: PolicyRoute) -> str:
    """A name that the route's instance answers to: the route's own, else the model's."""
    instance = next(i for i in plan.deployment.instances if i.name == route.instance)
    names = served_names(instance.engine_args)
    return route.name if route.name in names else names[0]


def _check_names(plan: Plan, policy: RoutingPolicy) -> None:
    for instance in plan.deployment.instances:
        if policy.model not in served_names(instance.engine_args):
            raise OutputError(
                f"instance {instance.name} does not answer to {policy.model}, the name under which "
                "requests are routed by their length",
                where=f"instance {instance.name}",
                fix="plan again: every instance of a plan serves the model's own name",
            )
