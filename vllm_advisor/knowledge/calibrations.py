"""Calibrations of either kind, from files or plain data: constants of speed, memory of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.calibration_file import CalibrationKeys, fit_of
from vllm_advisor.knowledge.memory_calibration_file import KIND, MemoryCalibrationKeys
from vllm_advisor.knowledge.workload_problems import read_keys
from vllm_advisor.knowledge.yaml_marks import MarkedYaml, load_marked
from vllm_advisor.types.latency import LatencyFit

_FIX = (
    "name a file that `vllm-advisor calibrate --output FILE` or `vllm-advisor report LOG --output "
    "FILE` wrote"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFile:
    """The checked keys of a memory calibration, and the name of its file."""

    name: str
    keys: MemoryCalibrationKeys


Calibration: TypeAlias = str | Path | Mapping[str, Any] | MemoryFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrations:
    """What was given: at most one of latency, and at most one of memory for each GPU type."""

    latency: LatencyFit | None = None
    memory: tuple[MemoryFile, ...] = ()


def read_calibrations(given: Calibration | Sequence[Calibration] | None) -> Calibrations:
    """Read calibrations of either kind.

    Args:
        given: paths, plain data as ``StartupReport.calibration()`` gives it, or what was read
            already; one or several.

    Raises:
        InputError: one cannot be read, something in it is wrong, or two are of the same thing.
    """
    if given is None:
        return Calibrations()
    sources = (given,) if isinstance(given, str | Path | Mapping | MemoryFile) else given
    latency: LatencyFit | None = None
    memory: dict[str, MemoryFile] = {}
    for found in map(_read, sources):
        if isinstance(found, LatencyFit):
            if latency is not None:
                raise InputError(
                    "two calibrations of speed are given", where="--calibration", fix="give one"
                )
            latency = found
        elif (gpu := found.keys.gpu) in memory:
            raise InputError(
                f"{memory[gpu].name} and {found.name} are both of the memory of {gpu}",
                where="--calibration",
                fix="give one of them",
            )
        else:
            memory[gpu] = found
    return Calibrations(latency=latency, memory=tuple(memory.values()))


def latency_calibration(given: Calibration) -> LatencyFit:
    """Read one where only speed is asked about.

    Raises:
        InputError: as :func:`read_calibrations`, or it is of memory.
    """
    found = read_calibrations(given)
    if found.latency is None:
        raise InputError(
            "this is a calibration of memory, and none of speed",
            where=str(given) if isinstance(given, str | Path) else "--calibration",
            fix="name a file that `vllm-advisor calibrate --output FILE` wrote",
        )
    return found.latency


def memory_calibrations(
    given: Calibration | Sequence[Calibration],
) -> tuple[MemoryFile, ...]:
    """Read calibrations where only memory is asked about.

    Raises:
        InputError: as :func:`read_calibrations`, or one is of speed.
    """
    found = read_calibrations(given)
    if found.latency is not None:
        raise InputError(
            "this is a calibration of speed, and says nothing of memory",
            where="--calibration",
            fix="give it to estimate or plan; `vllm-advisor report LOG --output FILE` makes one of "
            "memory",
        )
    return found.memory


def _read(source: Calibration) -> LatencyFit | MemoryFile:
    if isinstance(source, MemoryFile):
        return source
    marked = _marked(source)
    name = Path(marked.file).name
    kind = marked.data.get("kind", "latency")  # which files of latency need not say
    if kind not in ("latency", KIND):
        raise InputError(
            f"kind: {str(kind)[:60]!r} is no kind of calibration",
            where=marked.where(("kind",)),
            fix=f"latency or {KIND}; {_FIX}",
        )
    if kind == KIND:
        return MemoryFile(name=name, keys=read_keys(marked, MemoryCalibrationKeys))
    return fit_of(read_keys(marked, CalibrationKeys), file=name)


def _marked(source: str | Path | Mapping[str, Any]) -> MarkedYaml:
    if isinstance(source, Mapping):
        return MarkedYaml(file="calibration", data=dict(source), marks={(): (1, 1)})
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is no UTF-8 text"
        raise InputError(f"cannot read: {reason}", where=str(source), fix=_FIX) from None
    return load_marked(text, str(source))
