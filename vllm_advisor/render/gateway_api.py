"""Target ``gateway-api``: the manifests, and an HTTPRoute that goes by header and by model name.

A Gateway sees no tokens: a client names the route it wants, in the policy's header or, where
something copies it out of the body, by the model.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.gateway import through_gateway
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.kubernetes import render_folder
from vllm_advisor.render.kustomization import SERVICE_PORT, kustomization
from vllm_advisor.render.names import dns_label, metadata_of, object_name, plan_labels
from vllm_advisor.render.pod import served_names
from vllm_advisor.render.routing import policy_of
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.routing import INSTANCE_HEADER, RoutingPolicy

TARGET = "gateway-api"
# Set by llm-d's inference payload processor from the body (body-based routing).
MODEL_HEADER = "X-Gateway-Model-Name"


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``gateway-api/<instance>.yaml``, ``httproute.yaml`` and a kustomization.

    Raises:
        OutputError: the plan has no routing policy, or no Gateway is named.
    """
    policy = policy_of(plan)
    if plan.environment.gateway_name is None:
        raise OutputError(
            "an HTTPRoute belongs to a Gateway, and gateway_name is null",
            where="environment.gateway_name",
            fix="--set gateway_name=NAME, or use the target kubernetes",
        )
    _, *files = render_folder(through_gateway(plan), engine, TARGET)
    text = render_template("gateway-api/httproute.yaml.j2", _view(plan, policy))
    files.append(Artifact(path=f"{TARGET}/httproute.yaml", text=text))
    names = [artifact.path.split("/")[-1] for artifact in files]
    return (kustomization(plan, TARGET, names, _requests(plan, policy)), *files)


def _view(plan: Plan, policy: RoutingPolicy) -> dict[str, Any]:
    place = plan.environment
    services = {i.name: object_name(plan, i) for i in plan.deployment.instances}
    first = policy.route(policy.by_length[0])
    rules = [
        {
            "because": f"{route.name}: {route.reason}; at most {route.max_prompt_tokens:,} tokens.",
            "headers": [{"name": policy.header, "value": route.name}]
            + [
                {"name": MODEL_HEADER, "value": name}
                for name in (route.name,)
                if name in _served(plan, route.instance)
            ],
            "service": services[route.instance],
            "instance": route.instance,
        }
        for route in policy.routes
    ]
    rules.append(
        {
            "because": f"No route is named: {first.instance}, whatever the length. vLLM refuses "
            f"prompts above {first.max_model_len:,} tokens, and cuts answers off there.",
            "headers": [],
            "service": services[first.instance],
            "instance": first.instance,
        }
    )
    return {
        "metadata": metadata_of(dns_label(plan.name), place, {**place.labels, **plan_labels(plan)}),
        "place": place,
        "policy": policy,
        "model_header": MODEL_HEADER,
        "instance_header": INSTANCE_HEADER,
        "port": SERVICE_PORT,
        "rules": rules,
    }


def _served(plan: Plan, name: str) -> list[str]:
    return next(served_names(i.engine_args) for i in plan.deployment.instances if i.name == name)


def _requests(plan: Plan, policy: RoutingPolicy) -> list[str]:
    """Where an application sends the requests of each class."""
    place = plan.environment
    host = f" (host {place.ingress_host})" if place.ingress_host else ""
    return [
        f"{each.name}: "
        + ("passages found by retrieval " if each.retrieve else "")
        + f"to the Gateway {place.gateway_name}{host}, path /v1, header "
        f"{policy.header}: {each.route}, model {policy.model}"
        + (f"; else {policy.header}: {each.fallback}" if each.fallback else "")
        for each in policy.classes
    ]
