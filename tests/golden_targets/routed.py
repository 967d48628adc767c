"""Plans with another routing policy than their own, for the targets that are routers."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.types.routing import RoutingPolicy

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "routing"))
from policies import CONTRACTS

__all__ = ["CONTRACTS", "with_policy"]


def with_policy(of: PlanReport, policy: RoutingPolicy | None = None) -> PlanReport:
    """The plan with the policy, where one is given."""
    if policy is None:
        return of
    return dataclasses.replace(of, plan=dataclasses.replace(of.plan, routing=policy))
