"""Target ``helm-production-stack``: values for ``vllm-stack``, the chart of production-stack.

What the chart makes of a value was read in its templates
(github.com/vllm-project/production-stack, helm/, commit a6c01db0) and tried with Helm; see
``tests/judges/production_stack.py``.
"""

from __future__ import annotations

import shlex
from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.kubernetes import NGINX, ingress_annotations, network_namespaces
from vllm_advisor.render.kustomization import secret_commands
from vllm_advisor.render.names import dns_label, is_plain_text, label_value
from vllm_advisor.render.pod import nodes_per_replica
from vllm_advisor.render.production_stack_engine import (
    PORT,
    RELEASE,
    engine_view,
)
from vllm_advisor.render.production_stack_limits import chart_limits
from vllm_advisor.render.rollout import rollout_limits, rollout_reason
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import Environment, GpuAllocation, Monitoring
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.version import __version__

TARGET = "helm-production-stack"
CHART_VERSION = "0.1.12"
_ROUTER_IMAGE = "lmcache/lmstack-router"
_ROUTER_TAG = f"v{CHART_VERSION}"  # pushed with the chart: .github/workflows/helm-release.yml
_UNQUOTED = (
    "hf_token_secret",
    "hf_token_key",
    "api_key_secret",
    "api_key_key",
    "runtime_class_name",
    "ingress_class_name",
    "ingress_tls_secret",
)


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``helm-production-stack/values.yaml``, one ``modelSpec`` for each instance.

    Raises:
        OutputError: an argument cannot be written, no pod could see the model, or the chart has no
            way to deploy the plan.
    """
    _check(plan)
    account = dns_label(f"{plan.name}-engine")
    engines = [engine_view(plan, one, engine, account) for one in plan.deployment.instances]
    view = _view(plan, engine, engines, account)
    text = render_template("helm-production-stack/values.yaml.j2", view)
    return (Artifact(path=f"{TARGET}/values.yaml", text=text),)


def _view(
    plan: Plan, engine: EngineFacts, engines: list[dict[str, Any]], account: str
) -> dict[str, Any]:
    """Everything the template places but the engines themselves."""
    place = plan.environment
    slowest = max(engines, key=lambda one: one["startup_seconds"])
    surge = _surge(plan, engines)
    several = any(one["several"] for one in engines)
    registry = f"{place.image_registry}/" if place.image_registry else ""
    return {
        "header": f"Plan {plan.name} for vLLM {plan.vllm_version}; written by vllm-advisor "
        f"{__version__} for the chart vllm-stack {CHART_VERSION} of production-stack. PLAN.md has "
        "the whole reasoning.",
        "secret_commands": secret_commands(plan),
        "install": _install(place),
        "limits": chart_limits(plan, engines),
        "labels": {"environment": None, "release": label_value(plan.name) or "vllm"},
        "place": place,
        "runtime_class": place.runtime_class_name or "",
        "port": PORT,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": rollout_limits(surge=surge),
        },
        "strategy_because": rollout_reason(
            "The old pod gives its GPUs and its volume back first; the chart's default of 100 % "
            "more pods would need twice the GPUs.",
            surge=surge,
        ),
        "startup": slowest,
        "user": engine.image_uid,
        "non_root": engine.image_uid is not None,
        "engines": engines,
        "monitored": place.monitoring is Monitoring.POD_MONITOR,
        "account": account,
        "policy_name": f"{RELEASE}-engines",
        "policy_selector": {
            "app.kubernetes.io/instance": RELEASE,
            "app.kubernetes.io/part-of": "vllm-stack",
        },
        "ingress_annotations": ingress_annotations(place),
        "streams": place.ingress_class_name == NGINX,
        "network_namespaces": network_namespaces(place),
        "router_repository": f"{registry}{_ROUTER_IMAGE}",
        "router_tag": _ROUTER_TAG,
        "routing": {"routingLogic": "session", "sessionKey": "x-session-id"}
        if several
        else {"routingLogic": "roundrobin"},
        "routing_because": "Requests with one value of this header go to one replica, which has "
        "their prefix in its cache; those without go to the replica with the fewest. prefixaware "
        "would need no header, but never forgets a prefix and runs out of memory "
        "(production-stack#687)."
        if several
        else "Every engine has one replica: there is nothing to stick to.",
    }


def _install(place: Environment) -> str:
    scope = ["--namespace", place.namespace] if place.namespace else []
    command = ["helm", "upgrade", "--install", "RELEASE", "vllm/vllm-stack"]
    return shlex.join([*command, "--version", CHART_VERSION, *scope, "--values", "values.yaml"])


def _surge(plan: Plan, engines: list[dict[str, Any]]) -> bool:
    """All engines roll at once: each needs room for one more pod, and a volume it can mount."""
    more = sum(instance.gpus for instance in plan.deployment.instances)
    spare = plan.node.total_gpus - plan.cost.gpus >= more
    shared = plan.environment.storage_access_mode == "ReadWriteMany"
    return spare and (shared or not any(engine["claim"] for engine in engines))


def _check(plan: Plan) -> None:
    place = plan.environment
    if place.gpu_allocation is GpuAllocation.DRA:
        raise OutputError(
            f"the chart vllm-stack {CHART_VERSION} has no key for resource claims",
            where="environment.gpu_allocation",
            fix="use gpu_allocation=device-plugin, or the target kubernetes",
        )
    for instance in plan.deployment.instances:
        if nodes_per_replica(plan, instance) > 1:
            raise OutputError(
                f"a replica of {instance.name} spans {nodes_per_replica(plan, instance)} nodes, "
                f"and the chart vllm-stack {CHART_VERSION} deploys one pod for each "
                "(or a cluster of KubeRay)",
                where=f"instance {instance.name}",
                fix="use the target leaderworkerset",
            )
    for key in _UNQUOTED:
        name = getattr(place, key)
        if name and not is_plain_text(name):
            raise OutputError(
                f"{name} would not be read as text: the chart writes it without quotes",
                where=f"environment.{key}",
                fix="use another name",
            )
