"""plan(): from a workload to a plan, and its files onto the disk, all or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vllm_advisor.api.hardware import resolve_hardware
from vllm_advisor.api.models import find_model
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.decide.plan import make_plan
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.knowledge.workloads import bundled_workload_path, load_workload, read_workload
from vllm_advisor.render.plan_file import plan_dict
from vllm_advisor.render.targets import render_plan
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.runner import Runner
from vllm_advisor.types.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """A plan with what is needed to print and render it."""

    plan: Plan
    engine: EngineFacts

    @property
    def feasible(self) -> bool:
        """The workload can be served."""
        return self.plan.feasible

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.yaml; keys are only ever added (see ``schema_version``)."""
        return plan_dict(self.plan, self.engine)

    def artifacts(self, targets: tuple[str, ...] = ("serve",)) -> tuple[Artifact, ...]:
        """The files of the plan."""
        return render_plan(self.plan, self.engine, targets)


def plan(
    workload: str | Path | Workload,
    *,
    text: str | None = None,
    hardware_gpu: str | None = None,
    vllm_version: str | None = None,
) -> PlanReport:
    """Plan a workload.

    Args:
        workload: path of a workload file, the name of a bundled one, or a Workload.
        text: the file's text, when ``workload`` is only its name (standard input).
        hardware_gpu: another GPU type than the workload names.
        vllm_version: another version than the workload names.

    Raises:
        InputError: the workload file is wrong.
        UnknownFactError: the model, the GPU or the hardware cannot be found out.
    """
    asked = _read(workload, text)
    if hardware_gpu is not None:
        hardware = replace(asked.hardware, kind="profile", gpu=hardware_gpu, node=None)
        asked = replace(asked, hardware=hardware)
    if vllm_version is not None:
        origins = {**asked.origins, "vllm_version": "--vllm-version"}
        asked = replace(asked, vllm_version=vllm_version, origins=origins)
    engine = load_engine(asked.vllm_version)
    model = find_model(asked.model)
    if model.runner is Runner.POOLING or model.encoder_decoder:
        raise NotModelledError(
            f"plans are for decoders that generate; {model.architecture} is none",
            where="model",
            fix=f"vllm-advisor size {asked.model} says what vLLM allocates for it",
        )
    node = resolve_hardware(asked.hardware)
    overheads = load_overheads(engine.version_used or engine.version)
    return PlanReport(plan=make_plan(asked, model, node, engine, overheads), engine=engine)


def write_plan(
    report: PlanReport,
    output_dir: str | Path,
    *,
    targets: tuple[str, ...] = ("serve",),
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Write the plan's files into a folder: all of them or none.

    Returns:
        The names written, in order.

    Raises:
        OutputError: the folder cannot be written, or holds other files of these names.
    """
    return write_artifacts(report.artifacts(targets), Path(output_dir), overwrite=overwrite)


def _read(workload: str | Path | Workload, text: str | None) -> Workload:
    if isinstance(workload, Workload):
        return workload
    if text is not None:
        return load_workload(text, file=str(workload))
    name = str(workload)
    if not Path(name).exists() and "/" not in name and "." not in name:
        # Named without its folder: the same plan on every machine.
        return load_workload(bundled_workload_path(name), file=f"{name}.yaml")
    return read_workload(workload)
