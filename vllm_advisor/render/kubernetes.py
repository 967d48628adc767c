"""Target ``kubernetes``: plain manifests, one file per instance, and a kustomization.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.render.groups import LEADER_LABEL, alone, leader, worker
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.kustomization import SERVICE_PORT, kustomization
from vllm_advisor.render.names import metadata_of, object_name
from vllm_advisor.render.pod import nodes_per_replica, pod_view
from vllm_advisor.render.rollout import has_spare, rollout_limits, rollout_reason
from vllm_advisor.render.scaling import scaling_view
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import Autoscaler, Environment, ModelCache, Monitoring
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.version import __version__

TARGET = "kubernetes"
NGINX = "nginx"  # ingress class of ingress-nginx


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``kubernetes/<instance>.yaml`` for each instance, and ``kubernetes/kustomization.yaml``.

    Raises:
        OutputError: an argument cannot be written, or no pod could see the model.
    """
    return render_folder(plan, engine, TARGET)


def render_folder(
    plan: Plan,
    engine: EngineFacts,
    folder: str,
    *,
    pod_labels: Mapping[str, Mapping[str, str]] | None = None,
    grouped: bool = False,
) -> tuple[Artifact, ...]:
    """The manifests in a folder.

    Args:
        plan: the plan.
        engine: facts of its vLLM version.
        folder: name of the folder.
        pod_labels: further labels of the pods of an instance, by its name.
        grouped: every instance as a LeaderWorkerSet, not only those that span nodes.
    """
    files = []
    for instance in plan.deployment.instances:
        view = instance_view(plan, instance, engine, grouped=grouped)
        view["pod_labels"] = {**view["labels"], **(pod_labels or {}).get(instance.name, {})}
        files.append(
            Artifact(
                path=f"{folder}/{view['name']}.yaml",
                text=render_template("kubernetes/instance.yaml.j2", view),
            )
        )
    return (kustomization(plan, folder, [f.path.split("/")[-1] for f in files]), *files)


def instance_view(
    plan: Plan, instance: Instance, engine: EngineFacts, *, grouped: bool
) -> dict[str, Any]:
    """Everything the templates place for one instance."""
    place = plan.environment
    pod = pod_view(plan, instance, engine)
    scaling = scaling_view(plan, instance)
    nodes = nodes_per_replica(plan, instance)
    grouped = grouped or nodes > 1
    several = max(instance.replicas, scaling["max_replicas"]) * nodes > 1
    own_claims = (several or grouped) and place.storage_access_mode != "ReadWriteMany"
    claims = place.model_cache is ModelCache.CLAIM and not pod["local_model"]
    shared_claim = claims and not own_claims
    controller = _controller(grouped=grouped, own_claims=claims and own_claims)
    one_mount = shared_claim and place.storage_access_mode != "ReadWriteMany"
    surge = has_spare(plan, instance) and not one_mount
    name = object_name(plan, instance)
    return {
        **pod,
        **scaling,
        "header": f"Instance {instance.name} ({instance.role}) of the plan {plan.name}, "
        f"for vLLM {plan.vllm_version}; written by vllm-advisor {__version__}.",
        "classes": instance.classes,
        "metadata": metadata_of(name, place, pod["labels"]),
        "claim_metadata": metadata_of(f"{name}-cache", place, pod["labels"]),
        "claim_name": f"{name}-cache",
        "cache_mount": _cache_mount(pod["home"], shared=shared_claim and several),
        "cache_volume": "emptyDir" if not claims else "claim" if shared_claim else "template",
        "controller": controller,
        "controller_because": _controller_because(controller, claims=claims, several=several),
        "scale_api": "leaderworkerset.x-k8s.io/v1" if grouped else "apps/v1",
        "replicas": instance.replicas,
        "spread": several and not grouped,
        "role": alone(),
        "leader": leader(place),
        "worker": worker(place) if nodes > 1 else alone(),
        "group_size": nodes,
        "several_nodes": nodes > 1,
        "rollout_limits": rollout_limits(surge=surge),
        "rollout_because": rollout_reason(
            "The old pod gives its GPUs and its volume back first: no spare GPU is needed.",
            surge=surge,
        ),
        "service_port": SERVICE_PORT,
        "service_selector": {**pod["selector"], **(LEADER_LABEL if grouped else {})},
        "network_namespaces": network_namespaces(place),
        "pod_monitor": place.monitoring is Monitoring.POD_MONITOR,
        "ingress_host": f"{instance.name}.{place.ingress_host}",
        "ingress_annotations": ingress_annotations(place),
        "streams": place.ingress_class_name == NGINX,
    }


def _cache_mount(home: str, *, shared: bool) -> str:
    """Compiled kernels are written without a lock: pods share downloads only."""
    return f"{home}/.cache/huggingface" if shared else f"{home}/.cache"


def _controller(*, grouped: bool, own_claims: bool) -> str:
    if grouped:
        return "LeaderWorkerSet"
    return "StatefulSet" if own_claims else "Deployment"


def _controller_because(controller: str, *, claims: bool, several: bool) -> str:
    if controller == "LeaderWorkerSet":
        return (
            "A LeaderWorkerSet: the pods of one replica, one on each of its nodes, start, fail and "
            "are replaced together. The cluster needs its controller (lws)."
        )
    if controller == "StatefulSet":
        return (
            "A StatefulSet, so that every replica has a claim of its own for the weights: a "
            "ReadWriteOnce volume cannot be mounted on several nodes."
        )
    if claims and several:
        return "A Deployment: the replicas share one ReadWriteMany claim for the weights."
    return "A Deployment: nothing has to outlive a pod but the weights it can download again."


def network_namespaces(place: Environment) -> list[str]:
    """Namespaces that may reach the servers, beside their own."""
    watched = place.monitoring is not Monitoring.NONE or place.autoscaler is not Autoscaler.NONE
    return [
        *dict.fromkeys(
            (
                *place.client_namespaces,
                *([place.ingress_namespace] if place.ingress_host else []),
                *([place.monitoring_namespace] if watched else []),
            )
        )
    ]


def ingress_annotations(place: Environment) -> dict[str, str]:
    """What lets long prompts in and long answers stream; ingress-nginx's defaults do not."""
    prefix = "nginx.ingress.kubernetes.io"
    streaming = {
        f"{prefix}/proxy-body-size": "64m",
        f"{prefix}/proxy-read-timeout": "3600",
        f"{prefix}/proxy-send-timeout": "3600",
        f"{prefix}/proxy-buffering": "off",
    }
    nginx = place.ingress_class_name == NGINX
    return {**(streaming if nginx else {}), **place.ingress_annotations}
