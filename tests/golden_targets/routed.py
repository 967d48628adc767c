"""Plans with a routing policy, for the targets that are routers."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.types.plan import Plan
from vllm_advisor.types.routing import Bound, ByteCount, PolicyRoute, RoutingPolicy

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "routing"))
from policies import CONTRACTS

__all__ = ["CONTRACTS", "policy_for", "with_policy"]


def with_policy(of: PlanReport, policy: RoutingPolicy | None = None) -> PlanReport:
    """The plan with a policy: the one given, its own, or else one made up."""
    found = policy or of.plan.routing or policy_for(of.plan)
    return dataclasses.replace(of, plan=dataclasses.replace(of.plan, routing=found))


def policy_for(plan: Plan) -> RoutingPolicy:
    """A route for each instance, shorter ones first; each is stood in for by the next."""
    instances = sorted(
        plan.deployment.instances, key=lambda each: int(each.engine_args.get("max_model_len", 0))
    )
    names = [instance.name for instance in instances]
    routes = []
    for instance, after in zip(instances, [*names[1:], None], strict=True):
        length = int(instance.engine_args.get("max_model_len", 0))
        routes.append(
            PolicyRoute(
                name=instance.name,
                instance=instance.name,
                role=instance.role,
                max_model_len=length,
                reserved_output_tokens=100,
                max_prompt_tokens=length - 100,
                max_prompt_bytes=(length - 100) * 3,
                bound_by=Bound.LENGTH,
                on_overflow=after,
                on_outage=after,
            )
        )
    return RoutingPolicy(
        plan=plan.name,
        model=plan.model,
        routes=tuple(routes),
        by_length=tuple(names),
        byte_count=ByteCount(bytes_per_token=4.0, margin=0.25, body_limit_bytes=16 << 20),
    )
