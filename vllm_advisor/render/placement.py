"""Which GPUs, which node and which port each replica gets when it is started by hand."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Instance, Plan
from vllm_advisor.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One server process (or one per node, where ``nodes`` is above 1).

    ``devices`` are indices on ``node``, as ``CUDA_VISIBLE_DEVICES`` takes them. ``port`` is
    ``None`` where neither the plan nor vLLM's own default says one; ``own_port`` says that the
    instance's arguments already name it.
    """

    instance: str
    node: int
    nodes: int
    devices: tuple[int, ...]
    port: int | None
    own_port: bool


def place_replicas(plan: Plan, engine: EngineFacts) -> tuple[Replica, ...]:
    """All replicas in the plan's order, each on the first node with enough GPUs left.

    Ports count up from the instance's own and are unique over the whole deployment, so that any
    two replicas may share a node.
    """
    per_node = max(1, plan.node.gpu_count)
    used: list[int] = []  # GPUs taken on each node
    ports = {p for i in plan.deployment.instances if (p := _port(i, engine)) is not None}
    owners: set[int] = set()  # ports whose first replica is placed
    replicas = []
    for instance in plan.deployment.instances:
        own = _port(instance, engine)
        for _ in range(instance.replicas):
            port = own
            if port is not None and port in owners:
                while port in ports:
                    port += 1
            if port is not None:
                ports.add(port)
                owners.add(port)
            node, first = _take(used, instance.gpus, per_node)
            here = min(instance.gpus, per_node)
            replicas.append(
                Replica(
                    instance=instance.name,
                    node=node,
                    nodes=ceil_div(instance.gpus, per_node),
                    devices=tuple(range(first, first + here)),
                    port=port,
                    own_port=port == own,
                )
            )
    return tuple(replicas)


def _port(instance: Instance, engine: EngineFacts) -> int | None:
    flag = engine.flags.get("port")
    port = instance.engine_args.get("port", flag.default if flag else None)
    return None if port is None else int(port)


def _take(used: list[int], gpus: int, per_node: int) -> tuple[int, int]:
    """Reserve GPUs in ``used``; returns the node and the first device on it."""
    if gpus > per_node:  # whole nodes
        node = len(used)
        used += [per_node] * ceil_div(gpus, per_node)
        return node, 0
    for node, taken in enumerate(used):
        if taken + gpus <= per_node:
            used[node] += gpus
            return node, taken
    used.append(gpus)
    return len(used) - 1, 0
