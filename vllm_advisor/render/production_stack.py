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
from vllm_advisor.render.kubernetes import network_namespaces, secret_commands
from vllm_advisor.render.names import LONGEST_NAME, dns_label, is_plain_text, label_value
from vllm_advisor.render.pod import nodes_per_replica
from vllm_advisor.render.production_stack_engine import LONGEST_RELEASE, PORT, engine_view
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import Autoscaler, Environment, GpuAllocation, Monitoring
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.version import __version__

TARGET = "helm-production-stack"
CHART_VERSION = "0.1.12"
_ROUTER_IMAGE = "lmcache/lmstack-router"
_ROUTER_TAG = f"v{CHART_VERSION}"  # pushed with the chart: .github/workflows/helm-release.yml
_GRACE_SECONDS = 30  # Kubernetes' default; the chart has no key for it
_PROGRESS_SECONDS = 1200  # progressDeadlineSeconds of every Deployment of the chart
_RELEASE = "{{ .Release.Name }}"  # filled in by Helm, in extraObjects only


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``helm-production-stack/values.yaml``, one ``modelSpec`` for each instance.

    Raises:
        OutputError: an argument cannot be written, no pod could see the model, or the chart has no
            way to deploy the plan.
    """
    _check(plan)
    account = dns_label(f"{plan.name}-engine", LONGEST_NAME)
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
        "secret_commands": secret_commands(place),
        "install": _install(place),
        "limits": _limits(plan, engines),
        "labels": {"environment": None, "release": label_value(plan.name) or "vllm"},
        "place": place,
        "runtime_class": place.runtime_class_name or "",
        "port": PORT,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": int(surge), "maxUnavailable": int(not surge)},
        },
        "strategy_because": "There are spare GPUs: the new pod is ready before the old one stops."
        if surge
        else "The old pod gives its GPUs and its volume back first; the chart's default of 100 % "
        "more pods would need twice the GPUs.",
        "startup": slowest,
        "user": engine.image_uid,
        "non_root": engine.image_uid is not None,
        "engines": engines,
        "monitored": place.monitoring is Monitoring.POD_MONITOR,
        "account": account,
        "policy_name": f"{_RELEASE}-engines",
        "policy_selector": {
            "app.kubernetes.io/instance": _RELEASE,
            "app.kubernetes.io/part-of": "vllm-stack",
        },
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
        else "Every model name has one replica: there is nothing to choose.",
    }


def _install(place: Environment) -> str:
    scope = ["--namespace", place.namespace] if place.namespace else []
    return shlex.join(
        ["helm", "upgrade", "--install", "RELEASE", "vllm/vllm-stack"]
        + ["--version", CHART_VERSION, *scope, "--values", "values.yaml"]
    )


def _surge(plan: Plan, engines: list[dict[str, Any]]) -> bool:
    """All engines roll at once: each needs room for one more pod, and a volume it can mount."""
    more = sum(instance.gpus for instance in plan.deployment.instances)
    spare = plan.node.total_gpus - plan.cost.gpus >= more
    shared = plan.environment.storage_access_mode == "ReadWriteMany"
    return spare and (shared or not any(engine["claim"] for engine in engines))


def _limits(plan: Plan, engines: list[dict[str, Any]]) -> list[str]:
    """What the chart has no key for, as far as it matters to this plan."""
    shutdown = max(engine["shutdown_seconds"] for engine in engines)
    deadline = max(engine["progress_deadline"] for engine in engines)
    alone = [engine["name"] for engine in engines if engine["claim_each"]]
    return [
        *_routing_limits(plan),
        f"RELEASE may have {LONGEST_RELEASE} characters: the chart puts it in front of names that "
        "end at 63, and checks none. Do not call it vllm: its pods are given VLLM_... variables "
        "for every Service of that name, and service links cannot be switched off.",
        f"All engines listen on {PORT}: the chart writes --host and --port itself, so the plan's "
        "ports are left out.",
        f"There is no preStop and no grace period: a pod has {_GRACE_SECONDS} s to stop"
        + (
            f", so of --shutdown-timeout {shutdown} the last {shutdown - _GRACE_SECONDS} s are "
            "cut off."
            if shutdown > _GRACE_SECONDS
            else "."
        ),
        "Probes, security contexts and the rollout are the same for all engines: the startup "
        "budget is that of the slowest.",
        *(
            [
                f"A rollout counts as failed after {_PROGRESS_SECONDS} s, and with its image to "
                f"pull a pod may take {deadline} s: it goes on, only `helm --wait` and `kubectl "
                "rollout status` give up."
            ]
            if deadline > _PROGRESS_SECONDS
            else []
        ),
        *(
            [
                f"There is one claim for all replicas of an engine: the pods of {', '.join(alone)} "
                "get claims of their own instead and download the weights at every start. "
                "storage_access_mode=ReadWriteMany lets them share one."
            ]
            if alone
            else []
        ),
        *(
            ["Autoscaling is KEDA's alone: autoscaler=hpa is left out."]
            if plan.environment.autoscaler is Autoscaler.HPA
            else []
        ),
        "There are no topology spread constraints, and no request for ephemeral storage.",
    ]


def _routing_limits(plan: Plan) -> list[str]:
    served: dict[str, list[str]] = {}
    for instance in plan.deployment.instances:
        for name in _served_names(instance):
            served.setdefault(name, []).append(instance.name)
    own = [name for name, by in served.items() if len(by) == 1]
    shared = [name for name, by in served.items() if len(by) > 1]
    text = "Requests cannot be routed by length: the router goes by the model that a request names"
    if own:
        text += f" ({', '.join(own)})"
    if shared:
        text += (
            f". {', '.join(shared)} is served by {' and '.join(served[shared[0]])} alike, "
            "and a long prompt may reach one that is too short for it: ask for the others"
        )
    return [f"{text}."]


def _served_names(instance: Instance) -> list[str]:
    names = instance.engine_args.get("served_model_name") or [instance.engine_args.model]
    return [str(name) for name in (names if isinstance(names, list | tuple) else [names])]


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
    written = ("hf_token_secret", "hf_token_key", "api_key_secret", "api_key_key")
    written += ("runtime_class_name", "ingress_class_name", "ingress_tls_secret")
    for key in written:
        name = getattr(place, key)
        if name and not is_plain_text(name):
            raise OutputError(
                f"{name} would not be read as text: the chart writes it without quotes",
                where=f"environment.{key}",
                fix="use another name",
            )
