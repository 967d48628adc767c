"""Of several kinds of hardware the cheapest that serves, with what the others would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vllm_advisor.types.plan import Alternative, Plan

_NO_PRICE = float("inf")


def cheapest(plans: Sequence[Plan]) -> Plan:
    """The plan of the cheapest hardware; the others stand among its alternatives.

    Plans without a price come after those with one, by their GPUs. Where none is feasible, the
    first says why, and the others in one line each.
    """
    best, *others = sorted(plans, key=_order)
    rest = tuple(_as_alternative(plan, best) for plan in others)
    because = best.infeasible_because
    if not best.feasible:
        because += tuple(f"{_name(plan)}: {_why(plan)}" for plan in others)
    return replace(best, alternatives=(*rest, *best.alternatives), infeasible_because=because)


def _order(plan: Plan) -> tuple[bool, float, int]:
    cost = plan.cost.usd_per_hour
    return (not plan.feasible, _NO_PRICE if cost is None else cost, plan.cost.gpus)


def _name(plan: Plan) -> str:
    gpus = plan.cost.gpus or plan.node.total_gpus
    return f"{gpus} x {plan.node.accelerator.id}"


def _why(plan: Plan) -> str:
    return "; ".join(plan.infeasible_because)


def _as_alternative(plan: Plan, best: Plan) -> Alternative:
    speeds = [f for f in plan.figures if ".speed.ttft." in f.id]
    tokens = [f for f in plan.figures if f.id.endswith(".speed.itl")]
    mine, theirs = plan.cost.usd_per_hour, best.cost.usd_per_hour
    if not plan.feasible:
        why = _why(plan)
    elif mine is None or theirs is None:
        why = "no price is known" if mine is None else "others have no price"
    else:
        why = f"{mine:,.2f} USD per hour instead of {theirs:,.2f}"
    return Alternative(
        name=_name(plan),
        subject="hardware",
        feasible=plan.feasible,
        gpus=plan.cost.gpus or None,
        kv_bytes_per_request=None,
        max_concurrency=None,
        cost_usd_per_hour=mine if plan.feasible else None,
        loses="nothing",
        why=why,
        ttft_p95_ms=max((float(f.value) for f in speeds), default=None),
        itl_p95_ms=max((float(f.value) for f in tokens), default=None),
    )
