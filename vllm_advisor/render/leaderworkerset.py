"""Target ``leaderworkerset``: every instance as a LeaderWorkerSet, one pod of it per node."""

from __future__ import annotations

from vllm_advisor.render.kubernetes import render_folder
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan

TARGET = "leaderworkerset"


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``leaderworkerset/<instance>.yaml`` and ``leaderworkerset/kustomization.yaml``.

    Target ``kubernetes`` writes the same for instances that span nodes, and for no others.

    Raises:
        OutputError: an argument cannot be written, or no pod could see the model.
    """
    return render_folder(plan, engine, TARGET, grouped=True)
