"""What production-stack's chart has no key for, as far as it matters to a plan."""

from __future__ import annotations

from typing import Any

from vllm_advisor.render.production_stack_engine import LONGEST_RELEASE, PORT
from vllm_advisor.types.environment import Autoscaler
from vllm_advisor.types.plan import Instance, Plan

_GRACE_SECONDS = 30  # Kubernetes' default
_PROGRESS_SECONDS = 1200  # progressDeadlineSeconds of every Deployment of the chart


def chart_limits(plan: Plan, engines: list[dict[str, Any]]) -> list[str]:
    """Sentences for the head of the values; ``engines`` are the views of the instances."""
    shutdown = max(engine["shutdown_seconds"] for engine in engines)
    deadline = max(engine["progress_deadline"] for engine in engines)
    alone = [engine["name"] for engine in engines if engine["claim_each"]]
    found = [_routing(plan)]
    found.append(
        f"RELEASE may have {LONGEST_RELEASE} characters: the chart puts it in front of names that "
        "end at 63, and checks none. Do not call it vllm: its pods are given VLLM_... variables "
        "for every Service of that name, and service links cannot be switched off."
    )
    found.append(
        f"All engines listen on {PORT}: the chart writes --host and --port itself, so the plan's "
        "ports are left out."
    )
    grace = f"There is no preStop and no grace period: a pod has {_GRACE_SECONDS} s to stop"
    if shutdown > _GRACE_SECONDS:
        cut = shutdown - _GRACE_SECONDS
        grace += f", so of --shutdown-timeout {shutdown} the last {cut} s are cut off"
    found.append(f"{grace}.")
    found.append(
        "Probes, security contexts and the rollout are the same for all engines: the startup "
        "budget is that of the slowest."
    )
    if deadline > _PROGRESS_SECONDS:
        found.append(
            f"A rollout counts as failed after {_PROGRESS_SECONDS} s, and with its image to pull a "
            f"pod may take {deadline} s: it goes on, only `helm --wait` and `kubectl rollout "
            "status` give up."
        )
    if alone:
        found.append(
            f"There is one claim for all replicas of an engine: the pods of {', '.join(alone)} get "
            "claims of their own instead and download the weights at every start. "
            "storage_access_mode=ReadWriteMany lets them share one."
        )
    if plan.environment.autoscaler is Autoscaler.HPA:
        found.append("Autoscaling is KEDA's alone: autoscaler=hpa is left out.")
    found.append("There are no topology spread constraints, and no request for ephemeral storage.")
    return found


def _routing(plan: Plan) -> str:
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
        by = " and ".join(served[shared[0]])
        text += (
            f". {', '.join(shared)} is served by {by} alike, and a long prompt may reach one that "
            "is too short for it: ask for the others"
        )
    return f"{text}."


def _served_names(instance: Instance) -> list[str]:
    names = instance.engine_args.get("served_model_name") or [instance.engine_args.model]
    return [str(name) for name in (names if isinstance(names, list | tuple) else [names])]
