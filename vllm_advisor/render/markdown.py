"""PLAN.md: the plan for people to read and review, also what ``--format markdown`` prints."""

from __future__ import annotations

import shlex
from typing import Any

from vllm_advisor.render.argv import flag_words, model_word
from vllm_advisor.render.jinja import quantity, render_template
from vllm_advisor.render.plan_file import plan_dict
from vllm_advisor.render.routing import routing_view
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineArg, EngineFacts
from vllm_advisor.types.plan import Artifact, Instance, Plan


def render_markdown(plan: Plan, engine: EngineFacts) -> Artifact:
    """``PLAN.md``.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    data = plan_dict(plan, engine)
    view: dict[str, Any] = {
        "plan": data,
        "hardware": _hardware(data),
        "nearest": plan.nearest.splitlines(),
        "price": _price(data["cost"]["usd_per_hour"]),
        "instances": [
            {**shown, "command": wrapped_command(instance, engine)}
            for shown, instance in zip(data["instances"], plan.deployment.instances, strict=True)
        ],
        "scopes": _scopes(plan, engine),
        "figures": [
            {**figure, "shown": quantity(figure["value"], figure["unit"])}
            for figure in data["figures"]
        ],
        "policy": routing_view(plan.routing) if plan.routing else None,
        "alternatives": [
            {**alternative, "price": _price(alternative["cost_usd_per_hour"])}
            for alternative in data["alternatives"]
        ],
    }
    return Artifact(path="PLAN.md", text=render_template("plan/PLAN.md.j2", view))


def wrapped_command(instance: Instance, engine: EngineFacts) -> str:
    """The command with one argument on each line, as one pastes it into a shell."""
    lines = [shlex.join(["vllm", "serve", model_word(instance)])]
    lines += [shlex.join(flag_words(arg, engine)) for arg in instance.engine_args]
    return " \\\n  ".join(lines)


def _hardware(data: dict[str, Any]) -> str:
    node = data["hardware"]
    each = f"{node['gpu_count']} x {node['gpu_name']}"
    return each if node["node_count"] == 1 else f"{node['node_count']} nodes of {each}"


def _price(usd_per_hour: float | None) -> str:
    return "price unknown" if usd_per_hour is None else f"{usd_per_hour:,.2f} USD per hour"


def _scopes(plan: Plan, engine: EngineFacts) -> list[dict[str, Any]]:
    """Decisions by the instance they are about; those about none of them come last."""
    names = [instance.name for instance in plan.deployment.instances]
    scopes: list[dict[str, Any]] = [{"title": name, "decisions": []} for name in names]
    scopes.append({"title": "The deployment", "decisions": []})
    for decision in plan.decisions:
        owner = next((n for n in names if decision.id.startswith(f"{n}.")), None)
        scope = scopes[names.index(owner) if owner is not None else -1]
        scope["decisions"].append({"decision": decision, "setting": _setting(decision, engine)})
    return [scope for scope in scopes if scope["decisions"]]


def _setting(decision: Decision, engine: EngineFacts) -> str:
    """What was decided: the words on the command line, or the subject and its value."""
    if decision.dest is not None and decision.dest in engine.flags:
        arg = EngineArg(dest=decision.dest, value=decision.value, origin=decision)
        return shlex.join(flag_words(arg, engine))
    value = decision.value
    shown = {True: "yes", False: "no", None: "none"}[value] if _is_state(value) else value
    return f"{decision.subject}: {shown}"


def _is_state(value: object) -> bool:
    return value is None or isinstance(value, bool)
