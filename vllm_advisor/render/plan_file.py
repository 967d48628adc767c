"""plan.yaml: the whole plan as plain data, the same data that ``--format json`` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import yaml

from vllm_advisor.render.argv import flag_spelling, serve_command
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Alternative, Artifact, Instance, Plan, Route
from vllm_advisor.types.sizing import Figure
from vllm_advisor.version import __version__

__all__ = ["SCHEMA_VERSION", "figures_dict", "plan_dict", "render_plan_file"]

SCHEMA_VERSION = "1"
_NUMBER = re.compile(r"[-+]?(?:\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?|0[ox][0-9a-fA-F]+)")
_HEADER = (
    f"# Written by vllm-advisor {__version__}. Do not edit: change the workload and plan again.\n"
    "# Ask why, of any value: vllm-advisor explain plan.yaml ID\n"
)


def plan_dict(plan: Plan, engine: EngineFacts) -> dict[str, Any]:
    """The plan as JSON types. Keys are only ever added; ``schema_version`` says so.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "vllm-advisor", "version": __version__},
        "name": plan.name,
        "feasible": plan.feasible,
        "model": plan.model,
        "vllm_version": plan.vllm_version,
        "confidence": str(plan.confidence),
        "hardware": _hardware(plan),
        "instances": [_instance(i, engine) for i in plan.deployment.instances],
        "routing": [_route(r) for r in plan.routes],
        "routing_policy": plan.routing.to_dict() if plan.routing else None,
        "decisions": [_decision(d, engine) for d in plan.decisions],
        "figures": [_figure(f) for f in plan.figures],
        "alternatives": [_alternative(a) for a in plan.alternatives],
        "assumptions": [
            {"id": a.id, "text": a.text, "lowers_to": str(a.lowers_to)} for a in plan.assumptions
        ],
        "cost": {
            "gpus": plan.cost.gpus,
            "usd_per_hour": plan.cost.usd_per_hour,
            "price_source": plan.cost.price_source,
            "usd_per_million_output_tokens": plan.cost.usd_per_million_output_tokens,
            "usd_per_request": plan.cost.usd_per_request,
        },
        "infeasible_because": list(plan.infeasible_because),
        "nearest": plan.nearest,
        "notes": list(plan.notes),
        "inputs": plain(plan.inputs),
        "environment": plain(plan.environment.given()),
    }


def render_plan_file(plan: Plan, engine: EngineFacts) -> Artifact:
    """``plan.yaml``; it loads back to exactly :func:`plan_dict`.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    text = yaml.dump(
        plan_dict(plan, engine),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return Artifact(path="plan.yaml", text=_HEADER + text)


def plain(value: Any) -> Any:
    """A value as JSON has it: tuples become lists, members of enumerations their values.

    Raises:
        TypeError: JSON has nothing for a value of this type.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in plan.yaml: {value!r}")


def _hardware(plan: Plan) -> dict[str, Any]:
    node, gpu = plan.node, plan.node.accelerator
    return {
        "gpu": gpu.id,
        "gpu_name": gpu.name,
        "gpu_count": node.gpu_count,
        "node_count": node.node_count,
        "interconnect": str(node.interconnect),
        "memory_total": gpu.memory_total,
        "memory_total_source": str(gpu.memory_total_source),
        "memory_used": node.memory_used,
        "compute_capability": ".".join(str(part) for part in gpu.compute_capability),
        "source": str(node.source),
    }


def _instance(instance: Instance, engine: EngineFacts) -> dict[str, Any]:
    figures = instance.figures
    return {
        "name": instance.name,
        "role": instance.role,
        "replicas": instance.replicas,
        "gpus": instance.gpus,
        "classes": list(instance.classes),
        "engine_args": plain(instance.engine_args.as_dict()),
        "command": serve_command(instance, engine),
        "figures": figures_dict(figures, figures.capacity.max_model_len) if figures else None,
    }


def _route(route: Route) -> dict[str, Any]:
    return {
        "request_class": route.request_class,
        "strategy": route.strategy,
        "instance": route.instance,
        "retrieve": route.retrieve,
        "fallback": route.fallback,
        "reason": route.reason,
    }


def _decision(decision: Decision, engine: EngineFacts) -> dict[str, Any]:
    flag = engine.flags.get(decision.dest) if decision.dest else None
    return {
        "id": decision.id,
        "subject": decision.subject,
        "value": plain(decision.value),
        "flag": flag_spelling(flag) if flag else None,
        "reason": decision.reason,
        "source": str(decision.source),
        "because": list(decision.because),
        "rejected": [{"option": r.option, "why": r.why} for r in decision.rejected],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "id": figure.id,
        "value": figure.value,
        "unit": figure.unit,
        "formula": figure.formula,
        "inputs": list(figure.inputs),
        "source": str(figure.source),
    }


def _alternative(alternative: Alternative) -> dict[str, Any]:
    return {
        "name": alternative.name,
        "subject": alternative.subject,
        "feasible": alternative.feasible,
        "gpus": alternative.gpus,
        "kv_bytes_per_request": alternative.kv_bytes_per_request,
        "max_concurrency": alternative.max_concurrency,
        "cost_usd_per_hour": alternative.cost_usd_per_hour,
        "ttft_p95_ms": alternative.ttft_p95_ms,
        "itl_p95_ms": alternative.itl_p95_ms,
        "pareto": alternative.pareto,
        "loses": alternative.loses,
        "why": alternative.why,
    }


class _Dumper(yaml.SafeDumper):
    """Block style with lists indented under their key, and no anchors: every value in its place."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT002
        del indentless
        super().increase_indent(flow, False)  # noqa: FBT003


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Text, in double quotes where PyYAML's own choice would not be read back by every parser.

    It leaves a line separator (U+0085) in single quotes, where reading folds it, and numbers of
    YAML 1.2 (``1e3``, ``0o17``) unquoted.
    """
    quoted = not text.isprintable() or _NUMBER.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_Dumper.add_representer(str, _text)
