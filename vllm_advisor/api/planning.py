"""plan(): from a workload to a plan, and its files onto the disk, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.explaining import PLAN_FILE, explain, plan_text
from vllm_advisor.api.hardware import resolve_hardware
from vllm_advisor.api.models import find_model
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.decide.hardware_choice import cheapest
from vllm_advisor.decide.plan import make_plan
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.bundled_workloads import bundled_workload_path
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.environments import (
    make_environment,
    read_environment_file,
    read_settings,
)
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.knowledge.plan_reader import read_plan
from vllm_advisor.knowledge.workloads import load_workload, read_workload
from vllm_advisor.render.plan_file import plan_dict
from vllm_advisor.render.targets import render_plan, render_targets
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.environment import Environment
from vllm_advisor.types.plan import Artifact, Plan
from vllm_advisor.types.runner import Runner
from vllm_advisor.types.workload import Workload

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """A plan with what is needed to print and render it."""

    plan: Plan
    engine: EngineFacts
    read_from: str | None = None  # text of the plan.yaml, where it was read from one

    @property
    def feasible(self) -> bool:
        """The workload can be served."""
        return self.plan.feasible

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.yaml; keys are only ever added (see ``schema_version``)."""
        return plan_dict(self.plan, self.engine)

    def artifacts(self, targets: tuple[str, ...] = ("serve",)) -> tuple[Artifact, ...]:
        """The files of the plan, with those that are written whatever the target."""
        return render_plan(self.plan, self.engine, targets)

    def target_files(self, targets: tuple[str, ...] = ("serve",)) -> tuple[Artifact, ...]:
        """The files of the targets alone."""
        return render_targets(self.plan, self.engine, targets)


def plan(
    workload: str | Path | Workload,
    *,
    text: str | None = None,
    hardware_gpu: str | None = None,
    vllm_version: str | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    verify: bool = False,
    environment_file: str | Path | None = None,
    environment: tuple[str, ...] = (),
) -> PlanReport:
    """Plan a workload.

    Args:
        workload: path of a workload file, the name of a bundled one, or a Workload.
        text: the file's text, when ``workload`` is only its name (standard input).
        hardware_gpu: another GPU type than the workload names.
        vllm_version: another version than the workload names.
        calibration: constants of the engines' speed, as ``vllm-advisor calibrate`` writes them, and
            what start-up logs say of the memory, as ``vllm-advisor report`` writes it: files, or
            ``StartupReport.calibration()``. One of speed, and one of memory for each GPU type.
        verify: replay the stated load on what was chosen, and say whether the targets hold.
        environment_file: a file of environment keys; they win over the workload's.
        environment: ``KEY=VALUE`` words; they win over both. Never influences what is planned.

    Raises:
        InputError: the workload, the environment or a calibration is wrong, or a calibration of
            memory is of a GPU type that is not planned for.
        UnknownFactError: the model, the GPU or the hardware cannot be found out.
    """
    asked = _read(workload, text)
    if hardware_gpu is not None:
        hardware = replace(asked.hardware, kind="profile", gpu=hardware_gpu, node=None, options=())
        asked = replace(asked, hardware=hardware)
    if vllm_version is not None:
        origins = {**asked.origins, "vllm_version": "--vllm-version"}
        asked = replace(asked, vllm_version=vllm_version, origins=origins)
    surroundings = resolve_environment(asked.environment, environment_file, environment)
    engine = load_engine(asked.vllm_version)
    model = find_model(asked.model)
    if model.runner is Runner.POOLING or model.encoder_decoder:
        raise NotModelledError(
            f"plans are for decoders that generate; {model.architecture} is none",
            where="model",
            fix=f"vllm-advisor size {asked.model} says what vLLM allocates for it",
        )
    overheads = load_overheads(engine.version_used or engine.version)
    nodes = [resolve_hardware(one) for one in asked.hardware.options or (asked.hardware,)]
    offered, fit = [(node, overheads) for node in nodes], None
    if calibration is not None:
        from vllm_advisor.api.applied_calibration import calibrated_nodes  # noqa: PLC0415

        fit, offered = calibrated_nodes(calibration, nodes, model, engine, overheads)
    plans = [
        make_plan(
            asked, model, node, engine, constants, latency=fit or load_latency(), verify=verify
        )
        for node, constants in offered
    ]
    made = cheapest(plans)
    return PlanReport(plan=replace(made, environment=surroundings), engine=engine)


def read_report(
    plan_file: str | Path,
    *,
    text: str | None = None,
    environment_file: str | Path | None = None,
    environment: tuple[str, ...] = (),
) -> PlanReport:
    """A plan that was written, to be rendered again.

    Args:
        plan_file: a plan.yaml, or a folder that has one.
        text: the file's text, when ``plan_file`` is only its name.
        environment_file: a file of environment keys; they win over the plan's.
        environment: ``KEY=VALUE`` words; they win over both.

    Raises:
        InputError: the file is no plan.yaml of this version, or the environment is wrong.
    """
    if text is None:
        text = plan_text(plan_file)
    data = explain(plan_file, text=text)
    engine = load_engine(str(data.get("vllm_version")))
    read = read_plan(data, engine, file=str(plan_file))
    given = read.environment.given()
    surroundings = resolve_environment(given, environment_file, environment)
    return PlanReport(plan=replace(read, environment=surroundings), engine=engine, read_from=text)


def resolve_environment(
    given: dict[str, Any], file: str | Path | None, words: tuple[str, ...]
) -> Environment:
    """The environment: ``words`` win over ``file``, which wins over what is already given.

    Raises:
        InputError: something in them is wrong.
    """
    from_file = read_environment_file(file) if file is not None else {}
    return make_environment({**given, **from_file, **read_settings(words)})


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
    # Rendering for another environment writes that into the very plan.yaml that was read.
    known = {PLAN_FILE: report.read_from} if report.read_from is not None else {}
    return write_artifacts(
        report.artifacts(targets), Path(output_dir), overwrite=overwrite, known=known
    )


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
