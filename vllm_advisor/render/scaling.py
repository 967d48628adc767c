"""Autoscaling of an instance: between which numbers of replicas, and on which figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.render.names import object_name
from vllm_advisor.render.pod import served_names
from vllm_advisor.types.environment import Autoscaler, Monitoring
from vllm_advisor.types.plan import Instance, Plan


def scaling_view(
    plan: Plan, instance: Instance, metric_labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the templates place about autoscaling.

    ``metric_labels`` are those of the instance's metrics beside ``model_name``, which several
    instances may share; ``app_kubernetes_io_instance`` unless given.

    A replica is added when more requests are in the servers than the planned load puts on the
    planned replicas. The planned replicas are the least: they hold the load that was asked for.
    """
    place = plan.environment
    most = place.max_replicas or instance.replicas + _room(plan, instance)
    on = place.autoscaler is not Autoscaler.NONE and most > instance.replicas
    share = max(1, -(-_concurrency(plan, instance) // instance.replicas))
    model = served_names(instance.engine_args)[0]
    own = (
        ",".join(f'{key}="{_promql(value)}"' for key, value in metric_labels.items())
        if metric_labels
        else _own_pods(plan, instance)
    )
    chosen = f'model_name="{_promql(model)}",{own}'
    if place.namespace and not metric_labels:  # another one may hold the same plan
        chosen += f',namespace="{place.namespace}"'
    waiting = max(1, share // 4)
    counted = "run or wait"
    if place.autoscaler is Autoscaler.HPA:  # has no sum of two metrics, and takes the larger
        counted = f"run, or {waiting} that wait"
    return {
        "autoscaler": place.autoscaler.value if on else "none",
        "max_replicas": max(most, instance.replicas) if on else instance.replicas,
        "scaling_threshold": share,
        "scaling_query": f"sum(vllm:num_requests_running{{{chosen}}}) + "
        f"sum(vllm:num_requests_waiting{{{chosen}}})",
        "waiting_threshold": waiting,
        "scaling_because": f"One replica for every {share} requests that {counted}: what the "
        f"planned load puts on each planned replica ({instance.replicas}). At most as many as "
        + (
            "max_replicas says."
            if place.max_replicas
            else "the GPUs that the plan leaves free have room for; all instances share them."
        ),
    }


def _own_pods(plan: Plan, instance: Instance) -> str:
    """Which pods' metrics count: instances that serve one model are told apart."""
    name = object_name(plan, instance)
    if plan.environment.monitoring is Monitoring.POD_MONITOR:
        return f'app_kubernetes_io_instance="{name}"'  # a label that our PodMonitor adds
    return f'pod=~"{name}-[a-z0-9]+(-[a-z0-9]+)?"'


def _room(plan: Plan, instance: Instance) -> int:
    """Further replicas that the GPUs which the plan leaves free have room for."""
    return max(0, plan.node.total_gpus - plan.cost.gpus) // instance.gpus


def _concurrency(plan: Plan, instance: Instance) -> int:
    """Requests at once that the instance was planned for."""
    ids = {f"{instance.name}.concurrency.{name}" for name in instance.classes}
    return round(sum(f.value for f in plan.figures if f.id in ids))


def _promql(text: str) -> str:
    """Text inside a PromQL string in double quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
