"""Plans that no workload leads to: other instances, other arguments."""

from __future__ import annotations

import dataclasses
from typing import Any

from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArg, EngineArgs
from vllm_advisor.types.plan import Instance, Plan

_HERE = Location(file="test", line=1)


def with_instances(plan: Plan, *instances: Instance, **changes: Any) -> Plan:
    """The plan with these instances, and other changes of its fields."""
    deployment = dataclasses.replace(plan.deployment, instances=instances)
    return dataclasses.replace(plan, deployment=deployment, **changes)


def with_args(instance: Instance, *, model: str | None = None, **values: Any) -> Instance:
    """The instance with other arguments; None takes one away."""
    args = instance.engine_args
    kept = tuple(arg for arg in args if arg.dest not in values)
    new = args_of(args.model, **{k: v for k, v in values.items() if v is not None}).args
    changed = dataclasses.replace(args, model=model or args.model, args=(*kept, *new))
    return dataclasses.replace(instance, engine_args=changed)


def args_of(model: str, **values: Any) -> EngineArgs:
    """Arguments by their dests."""
    args = (EngineArg(dest=dest, value=value, origin=_HERE) for dest, value in values.items())
    return EngineArgs(model=model, args=tuple(args))
