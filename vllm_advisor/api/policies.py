"""The routing policy of a plan, from routing.yaml or plan.yaml, and the KV cache beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vllm_advisor.api.explaining import PLAN_FILE, explain
from vllm_advisor.errors import InputError
from vllm_advisor.routing.policy_file import read_policy
from vllm_advisor.types.routing import RoutingPolicy

ROUTING_FILE = "routing.yaml"
_FIX = "plan again with this version: vllm-advisor plan WORKLOAD --output-dir DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPolicy:
    """A policy, and the tokens of KV cache of each instance where a plan.yaml says them.

    Replicas are added up, and so are data-parallel engines: each has a cache of its own.
    """

    policy: RoutingPolicy
    cache_tokens: dict[str, int] = field(default_factory=dict)


def find_policy(plan: str | Path, *, with_cache: bool = False) -> PlannedPolicy:
    """The policy of a plan.

    Args:
        plan: a routing.yaml, a plan.yaml, or a folder that has one; there routing.yaml holds the
            policy, and a plan.yaml beside it the sizes of the KV caches.
        with_cache: look for these sizes.

    Raises:
        InputError: there is no such file, or no policy in it.
    """
    path = Path(plan)
    if path.is_dir():
        routing, planned = path / ROUTING_FILE, path / PLAN_FILE
        if routing.exists():
            policy, wanted = read_policy(routing), with_cache and planned.exists()
            tokens = _cache_tokens(explain(planned), planned) if wanted else {}
            return PlannedPolicy(policy=policy, cache_tokens=tokens)
        if planned.exists():
            return _of_plan(planned, with_cache=with_cache)
        raise InputError(
            f"the folder has neither {ROUTING_FILE} nor {PLAN_FILE}",
            where=str(plan),
            fix="name a folder that `vllm-advisor plan WORKLOAD --output-dir DIR` wrote",
        )
    if _is_plan(path):
        return _of_plan(path, with_cache=with_cache)
    return PlannedPolicy(policy=read_policy(path))


def _is_plan(path: Path) -> bool:
    """A plan.yaml has instances at its top level; routing.yaml has routes."""
    try:
        with path.open("rb") as stream:
            return any(line.startswith(b"instances:") for line in stream)
    except OSError:
        return False  # said by who reads it


def _of_plan(path: Path, *, with_cache: bool) -> PlannedPolicy:
    data = explain(path)
    given = data.get("routing_policy")
    if not isinstance(given, dict):
        raise InputError(
            "this plan has no routing_policy"
            if data.get("feasible", True)
            else "this plan is not feasible: there is nothing to route to",
            where=str(path),
            fix=_FIX,
        )
    try:
        policy = RoutingPolicy.from_dict(given)
    except KeyError as error:
        raise InputError(f"routing_policy has no key {error}", where=str(path), fix=_FIX) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"routing_policy cannot be read: {error}", where=str(path), fix=_FIX
        ) from None
    tokens = _cache_tokens(data, path) if with_cache else {}
    return PlannedPolicy(policy=policy, cache_tokens=tokens)


def _cache_tokens(data: dict[str, Any], path: Path) -> dict[str, int]:
    try:
        return {
            instance["name"]: instance["figures"]["kv_cache"]["total_tokens"] * instance["replicas"]
            for instance in data["instances"]
            if instance["figures"] and instance["figures"]["kv_cache"]["total_tokens"]
        }
    except (KeyError, TypeError) as error:
        raise InputError(
            f"the figures of the instances cannot be read: {type(error).__name__} {error}",
            where=str(path),
            fix=_FIX,
        ) from None
