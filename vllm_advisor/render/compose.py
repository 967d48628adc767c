"""Target ``compose``: a Compose file per node, a service per replica, for hosts with Docker."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.argv import flag_words, model_word
from vllm_advisor.render.because import because
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.names import dns_label
from vllm_advisor.render.placement import Replica, place_replicas
from vllm_advisor.render.pod import (
    ENGINE_READY_SECONDS,
    EXIT_SECONDS,
    HOME,
    expanded,
    figure_because,
    image,
    image_repository,
    image_tag,
    is_path,
    port_of,
    resources_of,
)
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import Environment, ModelCache, MultiNode
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.units import GIB, format_bytes
from vllm_advisor.version import __version__

TARGET = "compose"
_ANY_ADDRESS = "${VLLM_BIND_ADDRESS:-127.0.0.1}"  # on the host's own network: where it listens
_RANKS = ("node_rank", "master_addr", "headless")  # how ranks on several nodes find each other


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``compose/compose.yaml`` and ``compose/.env.example``; in ``node-<n>/`` if there are several.

    Raises:
        OutputError: an argument cannot be written, no container could see the model, or a replica
            spans nodes in a way that Compose cannot start.
    """
    replicas = place_replicas(plan, engine)
    nodes = max(replica.node + replica.nodes for replica in replicas)
    files = []
    for node in range(nodes):
        folder = TARGET if nodes == 1 else f"{TARGET}/node-{node + 1}"
        view = _file_view(plan, engine, replicas, node, nodes)
        for name in ("compose.yaml", ".env.example"):
            text = render_template(f"compose/{name.lstrip('.')}.j2", view)
            files.append(Artifact(path=f"{folder}/{name}", text=text))
    return tuple(files)


def _file_view(
    plan: Plan, engine: EngineFacts, replicas: tuple[Replica, ...], node: int, nodes: int
) -> dict[str, Any]:
    """What the templates place for one node."""
    place = plan.environment
    instances = [
        _instance_view(plan, instance, engine, here)
        for instance in plan.deployment.instances
        if (here := _services(instance, replicas, node))
    ]
    for number, view in enumerate(instances, 1):
        view["number"] = number
    downloads = any(view["downloads"] for view in instances)
    disk = max(
        int(resources_of(plan, instance).claim.value) for instance in plan.deployment.instances
    )
    gpus = 1 + max(int(d) for view in instances for s in view["services"] for d in s["devices"])
    which = f", node {node + 1} of {nodes}" if nodes > 1 else ""
    return {
        "header": f"Plan {plan.name}{which}, for vLLM {plan.vllm_version}; written by vllm-advisor "
        f"{__version__}. PLAN.md has the whole reasoning.",
        "needs": "Docker Compose 2.3.3 or later, the NVIDIA Container Toolkit, "
        f"{gpus} x {plan.node.accelerator.name}"
        + (f", and {format_bytes(disk)} of disk for downloads" if downloads else ""),
        "project": dns_label(plan.name),
        "pull_secrets": bool(place.image_pull_secrets),
        "image": expanded(_image(plan)),
        "pinned_from": image_tag(plan) if place.image_digest else "",
        "user": engine.image_uid,
        "home": HOME if engine.image_uid else "/root",
        "labels": {key: expanded(value) for key, value in place.labels.items()},
        "serves": any(not s["rank"] for view in instances for s in view["services"]),
        "api_key": place.api_key_secret is not None,
        "hf_token": place.hf_token_secret is not None and downloads,
        "cached": place.model_cache is ModelCache.CLAIM,
        "instances": instances,
        "spanning": any(view["spanning"] for view in instances),
    }


def _image(plan: Plan) -> str:
    """The image by its digest or else by its tag: Compose's format has no room for both."""
    digest = plan.environment.image_digest
    return f"{image_repository(plan.environment)}@{digest}" if digest else image(plan)


def _services(instance: Instance, replicas: tuple[Replica, ...], node: int) -> list[dict[str, Any]]:
    """The instance's containers on a node: one for each replica, or its rank there."""
    own = [replica for replica in replicas if replica.instance == instance.name]
    return [
        {
            # The number stands behind the last dash, so "chat" twice and "chat-1" cannot collide.
            "name": f"{dns_label(instance.name)}-{number}",
            "devices": [str(device) for device in replica.devices],
            "published": str(replica.port),
            "rank": node - replica.node,
            "nodes": replica.nodes,
        }
        for number, replica in enumerate(own, 1)
        if replica.node <= node < replica.node + replica.nodes
    ]


def _instance_view(
    plan: Plan, instance: Instance, engine: EngineFacts, services: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the services of an instance share, and the services."""
    spanning = services[0]["nodes"] > 1
    if spanning:
        _check_ranks(plan, instance, engine)
    needs = resources_of(plan, instance)
    port = str(port_of(instance, engine))
    startup = int(needs.startup.value)
    shutdown = int(instance.engine_args.get("shutdown_timeout", 0))
    return {
        "title": f"Instance {instance.name} ({instance.role})"
        + (f", serves {', '.join(instance.classes)}" if instance.classes else "")
        + f": {instance.replicas} x {instance.gpus} GPU{'s' if instance.gpus > 1 else ''}.",
        "host_needs": f"Each takes {needs.cpu.value} cores ({figure_because(needs.cpu)}) and "
        f"{format_bytes(int(needs.memory_limit.value))} of memory "
        f"({figure_because(needs.memory_limit)}). "
        "No limits: the host is there for it.",
        "services": services,
        "spanning": spanning,
        "model": expanded(model_word(instance)),
        "model_because": because(instance.engine_args.model_origin),
        "args": [
            {
                "because": because(arg.origin),
                "words": [expanded(word) for word in flag_words(arg, engine)],
            }
            for arg in instance.engine_args
        ],
        "mount": _model_mount(instance.engine_args.model, plan.environment),
        "downloads": not is_path(instance.engine_args.model),
        "port": port,
        "health_url": f"http://{_ANY_ADDRESS if spanning else '127.0.0.1'}:{port}/health",
        "startup_because": figure_because(needs.startup),
        "startup_seconds": str(startup),
        "waits_longer": startup > ENGINE_READY_SECONDS,
        "start_period": f"{startup}s",
        "shutdown_because": f"--shutdown-timeout {shutdown} s, and time to exit.",
        "stop_grace_period": f"{shutdown + EXIT_SECONDS}s",
        "shm": f"{int(needs.shm.value) // GIB}gb" if needs.shm else None,
        "shm_because": figure_because(needs.shm) if needs.shm else "",
    }


def _check_ranks(plan: Plan, instance: Instance, engine: EngineFacts) -> None:
    if plan.environment.multi_node is MultiNode.RAY:
        raise OutputError(
            "one replica spans nodes, and its ranks are to be started by Ray: a Compose file "
            "starts vLLM's own ranks only",
            where="environment.multi_node",
            fix="--set multi_node=mp, or a target for Kubernetes",
        )
    missing = [dest for dest in _RANKS if dest not in engine.flags]
    if missing or "nnodes" not in {arg.dest for arg in instance.engine_args}:
        raise OutputError(
            f"one replica spans nodes: vLLM {engine.version} cannot start its ranks without Ray",
            where=f"instance {instance.name}",
            fix="name a newer vllm_version, or use a target for Kubernetes",
        )


def _model_mount(model: str, place: Environment) -> dict[str, str] | None:
    """The host's folder and where the container sees it; nothing for a model on the Hub."""
    host = place.model_host_path
    if not is_path(model):
        if host is not None:
            raise OutputError(
                f"model_host_path is a folder, but the workload names {model} on the Hub",
                where="environment.model_host_path",
                fix=f"name the model by its folder below {place.model_mount_path}, or leave "
                "model_host_path out",
            )
        return None
    if host is None and not model.startswith("/"):
        raise OutputError(
            f"the model's folder {model} has no meaning in a container",
            where="model",
            fix="name the folder by its whole path, which is mounted as it is",
        )
    if host is not None and not model.startswith(f"{place.model_mount_path.rstrip('/')}/"):
        raise OutputError(
            f"the model's folder {model} is not below {place.model_mount_path}, where "
            "model_host_path is mounted",
            where="environment.model_mount_path",
            fix="name the model in the workload as the container sees it, or set model_mount_path",
        )
    source, target = (model, model) if host is None else (host, place.model_mount_path)
    return {"source": expanded(source), "target": expanded(target)}
