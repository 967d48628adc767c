"""Target ``serve``: one shell script per instance that starts ``vllm serve``, flag by flag."""

from __future__ import annotations

import re
import shlex
from typing import Any

from vllm_advisor.render.argv import flag_words, model_word, serve_argv, serve_command
from vllm_advisor.render.because import because
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.placement import Replica, place_replicas
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.version import __version__

__all__ = ["TARGET", "render", "render_serve", "script_names", "serve_argv", "serve_command"]

TARGET = "serve"
_LISTED_REPLICAS = 8
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


def render_serve(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """One executable ``serve-<instance>.sh`` for each instance of the plan.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    names = script_names(plan)
    replicas = place_replicas(plan, engine)
    return tuple(
        Artifact(
            path=names[instance.name],
            text=render_template(
                "serve/serve.sh.j2",
                _view(
                    plan,
                    instance,
                    names[instance.name],
                    engine,
                    [r for r in replicas if r.instance == instance.name],
                ),
            ),
            executable=True,
        )
        for instance in plan.deployment.instances
    )


render = render_serve


def script_names(plan: Plan) -> dict[str, str]:
    """File name of each instance's script, safe in any folder and unique within the plan."""
    names: dict[str, str] = {}
    for instance in plan.deployment.instances:
        stem = "serve-" + (_UNSAFE.sub("-", instance.name).strip("-.")[:80] or "instance")
        name, count = f"{stem}.sh", 1
        while name.lower() in (taken.lower() for taken in names.values()):
            count += 1
            name = f"{stem}-{count}.sh"
        names[instance.name] = name
    return names


def _view(
    plan: Plan, instance: Instance, script: str, engine: EngineFacts, replicas: list[Replica]
) -> dict[str, Any]:
    """What the template places: text for comments, words for the command."""
    capacity = instance.figures.capacity if instance.figures else None
    spanning = bool(replicas) and replicas[0].nodes > 1
    return {
        "script": script,
        "plan": plan.name,
        "instance": instance,
        "tool_version": __version__,
        "vllm_version": plan.vllm_version,
        "each": _each(plan, instance, replicas),
        "starts": _spanning_starts(script, engine) if spanning else _starts(script, replicas),
        "unlisted": 0 if spanning else max(0, len(replicas) - _LISTED_REPLICAS),
        "capacity": capacity,
        "engines": instance.figures.engines if instance.figures else 1,
        "concurrency": f"{capacity.max_concurrency:.2f}x" if capacity else "",
        "args": [
            {"because": because(arg.origin), "words": flag_words(arg, engine)}
            for arg in instance.engine_args
        ],
        "model": model_word(instance),
        "model_because": because(instance.engine_args.model_origin),
    }


def _each(plan: Plan, instance: Instance, replicas: list[Replica]) -> str:
    """How many replicas, and what each of them takes."""
    count = f"{instance.replicas} replica" + ("s" if instance.replicas != 1 else "")
    gpus = f"{instance.gpus} GPU" + ("s" if instance.gpus != 1 else "")
    each = f"{count} of {gpus} ({plan.node.accelerator.name})"
    if replicas and replicas[0].nodes > 1:
        nodes = replicas[0].nodes
        return f"{each}; one replica takes all GPUs of {nodes} nodes. On each of those nodes:"
    return f"{each}. To start {'it' if instance.replicas == 1 else 'them'}:"


def _starts(script: str, replicas: list[Replica]) -> list[str]:
    """One shell line per replica, naming its GPUs, its port and, if there are several, its node."""
    lines = []
    nodes = {replica.node for replica in replicas}
    for replica in replicas[:_LISTED_REPLICAS]:
        devices = ",".join(str(device) for device in replica.devices)
        line = f"CUDA_VISIBLE_DEVICES={devices} ./{shlex.quote(script)}"
        if replica.port is not None and not replica.own_port:
            line += f" --port {replica.port}"
        if nodes != {0}:
            line += f"  # node {replica.node + 1}"
        lines.append(line)
    return lines


def _spanning_starts(script: str, engine: EngineFacts) -> list[str]:
    """How a replica over several nodes starts: the first node leads, the others follow."""
    lead = "--master-addr FIRST_NODE" if "master_addr" in engine.flags else ""
    follow = [
        flag
        for dest, flag in (("node_rank", "--node-rank 1"), ("headless", "--headless"))
        if dest in engine.flags
    ]
    start = " ".join([f"./{shlex.quote(script)}", lead]).rstrip()
    return [start, " ".join([start, *follow]) + "  # second node; then 2, 3, ..."]
