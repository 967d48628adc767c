"""A memory calibration, held against the server that is sized: where it holds, and where not.

Another GPU type is refused, as a calibration of latency is. Of another model only what is the
GPU's own holds. Another version holds while vLLM measures its memory in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vllm_advisor.api.models import find_model, local_facts_only
from vllm_advisor.api.sizing import SizeReport, size
from vllm_advisor.api.startup_calibration import predicted_terms
from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.calibrations import Calibration, MemoryFile, read_calibrations
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.memory_calibration_file import MemoryCalibrationKeys, RestKeys
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.measured_memory import SETTINGS
from vllm_advisor.types.accelerator import Accelerator, Node
from vllm_advisor.types.engine import EngineFacts, Overheads
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.memory_calibration import LoggedTerm, MemoryCalibration
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Assumption, SourceKind
from vllm_advisor.units import MIB, format_bytes

_SAME = MIB  # bytes by which two predictions of the same thing may differ
_OF_GPU = ("gpu_memory", "before_start", "non_torch")
_RANKS = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "enable_expert_parallel": False,
}
_OF_SIZE = {"model", "gpu", "gpu_count", "vllm_version", "calibration"}  # and none of vLLM's
_AGAIN = "make it again: vllm-advisor report LOG --output FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedServer:
    """The constants with what a log says of them, and the GPU with the memory that it says."""

    overheads: Overheads
    accelerator: Accelerator


def calibrated_nodes(
    given: Calibration | Sequence[Calibration],
    nodes: Sequence[Node],
    model: ModelFacts,
    engine: EngineFacts,
    overheads: Overheads,
) -> tuple[LatencyFit | None, list[tuple[Node, Overheads]]]:
    """Calibrations of either kind for each of the nodes that are offered.

    Returns:
        Constants of speed if there are any, and each node with its constants of memory.

    Raises:
        InputError: one cannot be read, is wrong, or is of none of these GPUs.
    """
    found = read_calibrations(given)
    refuse_other_gpus(found.memory, (node.accelerator.id for node in nodes))
    servers = [
        with_calibration(found.memory, model, engine, overheads, node.accelerator) for node in nodes
    ]
    return found.latency, [
        (replace(node, accelerator=server.accelerator), server.overheads)
        for node, server in zip(nodes, servers, strict=True)
    ]


def with_calibration(
    files: Iterable[MemoryFile],
    model: ModelFacts,
    engine: EngineFacts,
    overheads: Overheads,
    accelerator: Accelerator,
) -> CalibratedServer:
    """Take the calibration of this GPU type, if there is one.

    Args:
        files: memory calibrations; :func:`refuse_other_gpus` has seen them.
        model: what is served.
        engine: the version.
        overheads: its constants.
        accelerator: the GPU.

    Raises:
        InputError: it was made with other bundled constants, or for versions of vLLM that measure
            their memory otherwise.
    """
    given = {file.keys.gpu: file for file in files}
    if accelerator.id not in given:
        others = _none_of(tuple(given.values()), accelerator)
        return CalibratedServer(
            overheads=replace(overheads, measured=others), accelerator=accelerator
        )
    file = given[accelerator.id]
    _refuse_other_versions(file, overheads, engine)
    keys = file.keys
    terms = {
        name: LoggedTerm(
            predicted=term.predicted,
            logged=term.logged,
            of=tuple(term.of) if isinstance(term, RestKeys) else (),
        )
        for name, term in keys.terms.given().items()
    }
    same = _last_part(keys.model) == _last_part(model.model_id)
    logged = model if same else _known_here(keys.model)
    settings: dict[str, Any] = {
        name: keys.engine_args.get(name, default) for name, default in _RANKS.items()
    }
    if logged is not None:
        sized = _as_logged(file, logged)
        _refuse_other_predictions(file, sized)
        settings = {name: getattr(sized.settings, name) for name in SETTINGS}
    if not same:
        terms = {name: term for name, term in terms.items() if name in _OF_GPU}
    measured = MemoryCalibration(
        file=file.name,
        gpu=keys.gpu,
        model=keys.model,
        vllm_version=keys.vllm_version,
        date=keys.date,
        terms=terms,
        settings=settings,
        notes=tuple(_notes(file, model, engine)),
    )
    total, stated = terms.get("gpu_memory"), accelerator.memory_total_source.kind
    if total is not None and stated in (SourceKind.PROFILE, SourceKind.ASSUMED):
        accelerator = replace(
            accelerator,
            memory_total=total.logged,
            memory_total_source=measured.source("gpu_memory"),
        )
    return CalibratedServer(
        overheads=replace(overheads, measured=measured), accelerator=accelerator
    )


def _none_of(files: tuple[MemoryFile, ...], accelerator: Accelerator) -> MemoryCalibration | None:
    """No term at all, where others of several GPU types are calibrated: it has to be said."""
    if not files:
        return None
    first, names = files[0], ", ".join(f"{file.name} of {file.keys.gpu}" for file in files)
    note = Assumption(
        id="memory-calibration-gpu",
        text=f"no calibration is of {accelerator.id}, and {names} says nothing of it",
    )
    return MemoryCalibration(
        file=first.name,
        gpu=accelerator.id,
        model=first.keys.model,
        vllm_version=first.keys.vllm_version,
        date=first.keys.date,
        terms={},
        settings={},
        notes=(note,),
    )


def _known_here(name: str) -> ModelFacts | None:
    """Facts of the log's own model, where they need neither its folder nor the Hub."""
    try:
        with local_facts_only():
            return find_model(name)
    except AdvisorError:
        return None


def refuse_other_gpus(files: Iterable[MemoryFile], gpus: Iterable[str]) -> None:
    """What one GPU type takes says nothing of another.

    Raises:
        InputError: a calibration is of none of these GPU types.
    """
    here = tuple(dict.fromkeys(gpus)) or ("a GPU that is known",)
    for file in files:
        if file.keys.gpu not in here:
            raise InputError(
                f"this calibration was made on {file.keys.gpu}, not on {' or '.join(here)}",
                where=f"--calibration {file.name}",
                fix=f"leave it out, or make one from a start-up log of {' or '.join(here)}",
            )


def _refuse_other_versions(file: MemoryFile, overheads: Overheads, engine: EngineFacts) -> None:
    """Versions of another family measure other things, or count them elsewhere."""
    logged = load_engine(file.keys.vllm_version)
    if load_overheads(logged.version_used or logged.version).versions != overheads.versions:
        raise InputError(
            f"this calibration was made with vLLM {logged.version}, and {engine.version} measures "
            "its memory otherwise",
            where=f"--calibration {file.name}",
            fix=f"leave it out, or make one from a start-up log of vLLM {engine.version}",
        )


def _as_logged(file: MemoryFile, model: ModelFacts) -> SizeReport:
    """The server of the log, sized by the bundled constants."""
    keys = file.keys
    if _OF_SIZE & keys.engine_args.keys():
        raise InputError(
            "the arguments of its log are none of vLLM's",
            where=f"--calibration {file.name}",
            fix=_AGAIN,
        )
    try:
        return size(
            model, gpu=find_gpu(keys.gpu), vllm_version=keys.vllm_version, **keys.engine_args
        )
    except AdvisorError as error:
        raise InputError(
            f"the arguments of its log cannot be sized: {error.what}",
            where=f"--calibration {file.name}",
            fix=_AGAIN,
        ) from None


def _refuse_other_predictions(file: MemoryFile, sized: SizeReport) -> None:
    """Terms of a file that stand beside other predictions would correct what is not wrong."""
    budget = sized.figures.budget
    if budget is None:
        return
    now = predicted_terms(budget)
    for name, term in file.keys.terms.given().items():
        if isinstance(term, RestKeys):
            expected = sum(now[part] for part in term.of)
        elif name in now:
            expected = now[name]
        else:
            continue  # what is gone before the start, and the memory of the GPU, replace it
        if abs(expected - term.predicted) > _SAME:
            raise InputError(
                f"terms.{name}: {format_bytes(term.predicted)} is not what is predicted, which is "
                f"{format_bytes(expected)}: the constants or the model are others",
                where=f"--calibration {file.name}",
                fix=_AGAIN,
            )


def _notes(file: MemoryFile, model: ModelFacts, engine: EngineFacts) -> Iterator[Assumption]:
    keys: MemoryCalibrationKeys = file.keys
    if _last_part(keys.model) != _last_part(model.model_id):
        yield Assumption(
            id="memory-calibration-model",
            text=f"{file.name} is of {keys.model}: only non-torch memory and what is gone before "
            "the start are taken from it, the rest depends on the model",
        )
    if keys.vllm_version != engine.version:
        yield Assumption(
            id="memory-calibration-version",
            text=f"{file.name} is of vLLM {keys.vllm_version}: {engine.version} is taken to spend "
            "the same",
        )
    for number, note in enumerate(keys.notes, 1):
        yield Assumption(id=f"memory-calibration-note-{number}", text=f"{file.name}: {note}")


def _last_part(model: str) -> str:
    """The name without organisation or folder: one checkpoint has many places."""
    return model.rstrip("/").rsplit("/", 1)[-1].lower()
