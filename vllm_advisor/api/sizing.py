"""size(): memory and KV cache of one instance, without deciding anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.arguments import integer
from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import runner_notes, served_model
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.api.start_memory import SHORT_AFTER_START, SHORT_AT_START, start_notes
from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.engines import engine_assumptions, load_engine, runs_fp8_weights
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.sizing.instance import cache_layout, size_instance
from vllm_advisor.sizing.measured_memory import CALIBRATION_NOTES
from vllm_advisor.sizing.parallelism import check_one_node
from vllm_advisor.sizing.remedies import Case, Remedy, denser, remedies
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import AttentionChoice, EngineFacts, Overheads
from vllm_advisor.types.memory_calibration import MemoryCalibration
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Assumption, Confidence, SourceKind, confidence_of

if TYPE_CHECKING:
    from vllm_advisor.api.applied_calibration import CalibratedServer
    from vllm_advisor.knowledge.calibrations import Calibration

GPUS_OF_ONE_NODE = 8  # HGX boards and the cloud instances built on them


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeReport:
    """The answer of :func:`size`; ``to_dict()`` is what ``vllm-advisor size --format json`` prints.

    ``fits`` is False when vLLM would refuse to start.
    """

    model: str
    gpu: str | None
    vllm_version: str
    settings: InstanceSettings
    figures: InstanceFigures
    engine_args: dict[str, Any]
    assumptions: tuple[Assumption, ...]
    changes: tuple[Remedy, ...] = ()
    calibration: MemoryCalibration | None = None

    @property
    def verdict(self) -> str:
        """``fits``, ``no_headroom`` (it may or may not start: see the assumptions), ``refused``."""
        if not self.fits:
            return "refused"
        short = any(a.id in (SHORT_AT_START, SHORT_AFTER_START) for a in self.assumptions)
        return "fits" if self.figures.headroom and not short else "no_headroom"

    @property
    def fits(self) -> bool:
        """vLLM would start."""
        return self.figures.starts

    @property
    def confidence(self) -> Confidence:
        """Lowest confidence any assumption allows."""
        return confidence_of(self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        figures = figures_dict(self.figures, self.settings.max_model_len)
        return {
            "schema_version": "1",
            "model": self.model,
            "gpu": self.gpu,
            "vllm_version": self.vllm_version,
            "engine_args": self.engine_args,
            "memory": figures["memory"],
            "kv_cache": figures["kv_cache"],
            "max_model_len": {
                "configured": self.settings.max_model_len,
                "derived_limit": self.figures.derived_max_model_len,
                "fits": self.figures.capacity.estimated_max_model_len,
            },
            "attention_backend": self.figures.attention_backend,
            "fits": self.fits,
            "verdict": self.verdict,
            "refusal": figures["refusal"],
            "changes": [_change(r) for r in self.changes],
            "confidence": self.confidence.value,
            "assumptions": [a.text for a in self.assumptions],
            "calibration": self.calibration_dict(),
        }

    def calibration_dict(self) -> dict[str, Any] | None:
        """What a log said, and which figures are from it; none where no log was asked."""
        log = self.calibration
        if log is None:
            return None
        sources = {f.id.removeprefix("memory."): str(f.source) for f in self.figures.figures}
        return {
            "file": log.file,
            "gpu": log.gpu,
            "model": log.model,
            "vllm_version": log.vllm_version,
            "date": log.date,
            "applied": {
                name: source
                for name, source in sources.items()
                if source.startswith(f"{SourceKind.MEASURED}:{log.file}#")
            },
            "notes": [a.text for a in self.assumptions if a.id.startswith(CALIBRATION_NOTES)],
        }


def _change(remedy: Remedy) -> dict[str, Any]:
    capacity = remedy.figures.capacity
    return {
        "flags": remedy.flags,
        "costs": remedy.costs,
        "tokens": capacity.tokens,
        "max_concurrency": capacity.max_concurrency,
    }


def size(
    model: str | ModelFacts,
    *,
    gpu: str | Accelerator | None = None,
    gpu_count: int = 1,
    vllm_version: str | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    **engine_args: Any,
) -> SizeReport:
    """Memory budget and KV cache capacity of one instance, as vLLM would print them.

    Args:
        model: Hub id, bundled name, folder with config.json, path to a config.json, or facts.
        gpu: GPU profile, NVML name or accelerator; not needed with ``kv_cache_memory_bytes``.
        gpu_count: GPUs of one node; more than one without parallel sizes means TP over them.
        vllm_version: default is the newest whose facts are known.
        calibration: what a start-up log of this GPU and model says of its memory: files that
            ``vllm-advisor report LOG --output FILE`` wrote, or ``StartupReport.calibration()``.
        **engine_args: vLLM's dest names (``tensor_parallel_size=2, kv_cache_dtype="fp8"``).

    Raises:
        InputError: an argument is unknown or has no meaning, or the calibration is of another GPU
            or of versions that measure their memory otherwise.
        InfeasibleError: vLLM refuses the arguments.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    known = find_model(model) if isinstance(model, str) else model
    facts = served_model(known, engine_args)
    engine = load_engine(vllm_version)
    accelerator = find_gpu(gpu) if isinstance(gpu, str) else gpu
    args = dict(engine_args)
    parallel = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    if gpu_count > 1 and not any(args.get(name) for name in parallel):
        args["tensor_parallel_size"] = gpu_count
    overheads = load_overheads(engine.version_used or engine.version)
    if calibration is not None:
        server = _calibrated(calibration, known, engine, overheads, accelerator)
        overheads, accelerator = server.overheads, server.accelerator
    resolved = resolve_settings(facts, engine, accelerator, args)
    check_one_node(
        resolved.settings.ranks,
        max(gpu_count, GPUS_OF_ONE_NODE),
        spread=bool(args.get("distributed_executor_backend") or integer(args, "nnodes", 1) > 1),
    )
    settings = resolved.settings
    figures = size_instance(facts, settings, accelerator=accelerator, overheads=overheads)
    if resolved.auto_max_model_len and not figures.capacity.fits:
        available = figures.capacity.available_bytes
        longest = cache_layout(facts, settings).longest(available, settings.max_model_len)
        if longest > 0:
            settings = replace(settings, max_model_len=longest)
            figures = size_instance(facts, settings, accelerator=accelerator, overheads=overheads)
    notes = (
        *figures.assumptions,
        *resolved.assumptions,
        *engine_assumptions(engine),
        *runner_notes(facts, settings),
        *start_notes(facts, settings, figures.budget, accelerator, overheads),
    )
    return SizeReport(
        model=facts.model_id,
        gpu=accelerator.id if accelerator else None,
        vllm_version=engine.version,
        settings=settings,
        figures=figures,
        engine_args=args,
        assumptions=notes,
        calibration=overheads.measured,
        changes=_changes(
            Case(
                model=facts,
                settings=settings,
                figures=figures,
                accelerator=accelerator,
                overheads=overheads,
                fp8=_fp8_cache(facts, accelerator),
                fp8_weights=runs_fp8_weights(engine, facts, accelerator),
                gpus=gpu_count if gpu_count > 1 else None,
            )
        ),
    )


def _calibrated(
    calibration: Calibration | Sequence[Calibration],
    model: ModelFacts,
    engine: EngineFacts,
    overheads: Overheads,
    accelerator: Accelerator | None,
) -> CalibratedServer:
    # Reading files needs pydantic, which sizing by bundled facts does not wait for.
    from vllm_advisor.api import applied_calibration as applied  # noqa: PLC0415
    from vllm_advisor.knowledge.calibrations import memory_calibrations  # noqa: PLC0415

    found = memory_calibrations(calibration)
    if accelerator is None:
        raise InputError(
            "a calibration is of one GPU type, and none is named",
            where="--gpu",
            fix="name the GPU, or leave out the calibration",
        )
    applied.refuse_other_gpus(found, (accelerator.id,))
    return applied.with_calibration(found, model, engine, overheads, accelerator)


def _changes(case: Case) -> tuple[Remedy, ...]:
    """What makes it start; where it starts, what holds more on the same GPUs."""
    if not (case.figures.starts and case.figures.headroom):
        return remedies(case)
    better = denser(case)
    return (better,) if better else ()


def _fp8_cache(model: ModelFacts, accelerator: Accelerator | None) -> AttentionChoice | None:
    if accelerator is None:
        return None
    try:
        return attention_choice(model, accelerator.capability, accelerator.name, "fp8")
    except AdvisorError:
        return None
