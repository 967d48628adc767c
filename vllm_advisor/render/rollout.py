"""How new pods of an instance replace old ones: with a spare GPU or without."""

from __future__ import annotations

from vllm_advisor.types.plan import Instance, Plan


def has_spare(plan: Plan, instance: Instance) -> bool:
    """The planned hardware has room for one more replica while an update is under way."""
    return plan.node.total_gpus - plan.cost.gpus >= instance.gpus


def rollout_limits(*, surge: bool) -> dict[str, int]:
    """One pod at a time: started before the old one stops (``surge``), or after it."""
    return {"maxSurge": 1, "maxUnavailable": 0} if surge else {"maxSurge": 0, "maxUnavailable": 1}


def rollout_reason(otherwise: str, *, surge: bool) -> str:
    """Why the limits are what they are; ``otherwise`` says it for rollouts without a spare GPU."""
    if surge:
        return "There are spare GPUs: the new pod is ready before the old one stops."
    return otherwise
