"""What a plan for the observed workload would change of what runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.observation import Observed
from vllm_advisor.types.plan import Instance, Plan

# Settings that servers show in their metrics, by the label of vllm:cache_config_info.
_SHOWN = {
    "kv_cache_dtype": "cache_dtype",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "enable_prefix_caching": "enable_prefix_caching",
    "block_size": "block_size",
}
# What a plan that does not set it leaves.
_DEFAULTS = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "kv_cache_dtype": "auto"}
_SURROUNDINGS = {"served_model_name", "port", "host", "shutdown_timeout"}  # nothing of the load's


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting of one planned instance; ``now`` is ``None`` where metrics do not show it."""

    instance: str
    setting: str
    now: Any
    planned: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A plan beside what runs; without one, ``why_not`` and ``fix`` say why.

    Costs are at the plan's price of a GPU; ``None`` where none is known.
    """

    feasible: bool | None = None
    gpu: str | None = None
    gpus_now: int | None = None
    gpus_assumed: bool = False  # one for each engine, where neither user nor plugin says how many
    gpus_planned: int | None = None
    usd_per_hour_now: float | None = None
    usd_per_hour_planned: float | None = None
    instances: tuple[Mapping[str, Any], ...] = ()
    settings: tuple[Change, ...] = ()
    because: tuple[str, ...] = ()
    nearest: str = ""
    confidence: str | None = None
    assumptions: tuple[str, ...] = ()
    why_not: str = ""
    fix: str = ""

    @property
    def saves_usd_per_hour(self) -> float | None:
        """What the plan costs less; negative where it costs more."""
        if self.usd_per_hour_now is None or self.usd_per_hour_planned is None:
            return None
        return round(self.usd_per_hour_now - self.usd_per_hour_planned, 4)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **asdict(self),
            "settings": [asdict(change) for change in self.settings],
            "saves_usd_per_hour": self.saves_usd_per_hour,
        }


def not_planned(why: str, fix: str) -> Changes:
    """No plan, and why."""
    return Changes(why_not=why, fix=fix)


def changes_of(plan: Plan, seen: Observed, *, gpus: int, assumed: bool = False) -> Changes:
    """The plan beside what runs on ``gpus`` GPUs now; ``assumed`` where nobody said how many."""
    each = (
        plan.cost.usd_per_hour / plan.cost.gpus
        if plan.cost.usd_per_hour is not None and plan.cost.gpus
        else None
    )
    instances = plan.deployment.instances if plan.feasible else ()
    return Changes(
        feasible=plan.feasible,
        gpu=plan.node.accelerator.id,
        gpus_now=gpus,
        gpus_assumed=assumed,
        gpus_planned=plan.cost.gpus if plan.feasible else None,
        usd_per_hour_now=None if each is None else round(each * gpus, 4),
        usd_per_hour_planned=plan.cost.usd_per_hour if plan.feasible else None,
        instances=tuple(
            {
                "name": one.name,
                "role": one.role,
                "replicas": one.replicas,
                "gpus": one.gpus,
                "classes": list(one.classes),
            }
            for one in instances
        ),
        settings=tuple(change for one in instances for change in _settings(one, seen)),
        because=plan.infeasible_because,
        nearest=plan.nearest,
        confidence=plan.confidence.value,
        assumptions=tuple(a.text for a in plan.assumptions),
    )


def gpu_of(seen: Observed) -> Accelerator | None:
    """The GPU that the plugin names, if all engines have the same and it is known."""
    names = {info.get("gpu", "") for info in seen.engine_info}
    if len(names) != 1 or not all(names):
        return None
    try:
        return find_gpu(names.pop())
    except AdvisorError:
        return None


def gpus_of(seen: Observed) -> int:
    """GPUs of all engines together; one for each of which the plugin does not say it."""
    known = _gpus_stated(seen)
    return max(1, sum(known) + seen.engines_now - len(known))


def says_gpus(seen: Observed) -> bool:
    """Whether the plugin says of every engine how many GPUs it takes."""
    return len(_gpus_stated(seen)) >= seen.engines_now


def _gpus_stated(seen: Observed) -> list[int]:
    counts = [info.get("gpus", "") for info in seen.engine_info]
    return [int(count) for count in counts if count.isdecimal()]


def _settings(instance: Instance, seen: Observed) -> list[Change]:
    """What the plan sets otherwise, or what nothing shows."""
    now: dict[str, Any] = {dest: seen.cache_config.get(label) for dest, label in _SHOWN.items()} | {
        "max_model_len": seen.max_model_len
    }
    now |= {
        dest: value
        for dest, value in (seen.engine_info[0] if seen.engine_info else {}).items()
        if now.get(dest) is None
    }
    reasons = {
        arg.dest: arg.origin.reason
        for arg in instance.engine_args
        if isinstance(arg.origin, Decision)
    }
    planned = {dest: default for dest, default in _DEFAULTS.items() if now.get(dest) is not None}
    planned |= instance.engine_args.as_dict()
    return [
        Change(
            instance=instance.name,
            setting=dest,
            now=now.get(dest),
            planned=value,
            reason=reasons.get(dest, "the plan needs no more than vLLM's default"),
        )
        for dest, value in planned.items()
        if dest not in _SURROUNDINGS and not _same(now.get(dest), value)
    ]


def _same(shown: Any, planned: Any) -> bool:
    """Whether a setting is as planned; labels are text."""
    if shown is None:
        return False
    try:
        return math.isclose(float(shown), float(planned))
    except (TypeError, ValueError):
        return str(shown) == str(planned)
