"""The answer of :func:`~vllm_advisor.api.calibrate`, and the file it is kept in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.knowledge.calibration_file import SCHEMA_VERSION, CalibrationKeys, fit_of
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.calibration import median_error
from vllm_advisor.types.latency import LatencyConstants, LatencyFit, Range
from vllm_advisor.types.measurement import Measurement
from vllm_advisor.version import __version__

_MS = 1000
_MOST_SOURCES = 10_000  # that the file takes
_LARGEST_ERROR = 1e6  # as a share; what is waited for without end has any
_HEAD = """\
# Constants of the speed of one server, as vllm-advisor calibrate found them.
# Use: vllm-advisor estimate ... --calibration THIS_FILE. Errors are medians over the measurements.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One quantity of one measurement, in seconds or tokens per second."""

    measured: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One measurement beside what both sets of constants say of it, by quantity."""

    measurement: Measurement
    quantities: dict[str, Compared]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """Constants of one server, and the errors before and after.

    ``errors`` has log(predicted / measured) by quantity, before and after.
    """

    model: str
    gpu: str
    gpus: int
    vllm_version: str
    engine_args: dict[str, Any]
    date: str
    start: LatencyFit
    constants: LatencyConstants
    ranges: dict[str, Range]
    free: tuple[str, ...]
    runs: tuple[ComparedRun, ...]
    errors: dict[str, tuple[list[float], list[float]]]
    sources: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def measurements(self) -> int:
        """All that the constants rest on: those of a calibration before it as well."""
        before = self.start.calibrated_on
        return len(self.runs) + (before.measurements if before else 0)

    @property
    def fit(self) -> LatencyFit:
        """What :func:`~vllm_advisor.estimate` takes: the same as the file read back."""
        return fit_of(CalibrationKeys.model_validate(self._file()), file="calibration")

    def text(self) -> str:
        """The calibration file."""
        from vllm_advisor.report.structured import to_yaml  # noqa: PLC0415 - only to be written

        return _HEAD + to_yaml(self._file())

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        start, end = self.start.constants.as_dict(), self.constants.as_dict()
        return {
            "schema_version": "1",
            **self._server(),
            "date": self.date,
            "measurements": [_run(run) for run in self.runs],
            "constants": {n: {"before": start[n], "after": end[n]} for n in self.free},
            "ranges": {
                name: {
                    "before": _range(self.start.ranges[name]),
                    "after": _range(self.ranges[name]),
                }
                for name in self.errors
                if name in self.ranges
            },
            "errors": self._errors(),
            "started_from": self.start.origin,
            "notes": list(self.notes),
        }

    def _file(self) -> dict[str, Any]:
        bundled = load_latency()
        base, found = bundled.constants.as_dict(), self.constants.as_dict()
        return {
            "schema_version": SCHEMA_VERSION,
            "advisor_version": __version__,
            "date": self.date,
            **self._server(),
            "measurements": self.measurements,
            "sources": list(self.sources[:_MOST_SOURCES]),
            "started_from": self.start.origin[:400],
            "constants": {
                name: {"before": base[name], "after": found[name]}
                for name in found
                if found[name] != base[name]
            },
            "ranges": {
                name: _range(found_range)
                for name, found_range in self.ranges.items()
                if found_range != bundled.ranges.get(name)
            },
            "errors": self._errors(),
        }

    def _server(self) -> dict[str, Any]:
        return {
            "gpu": self.gpu,
            "gpus": self.gpus,
            "model": self.model,
            "vllm_version": self.vllm_version,
            "engine_args": self.engine_args,
        }

    def _errors(self) -> dict[str, Any]:
        return {
            name: {
                "before": round(min(median_error(before), _LARGEST_ERROR), 4),
                "after": round(min(median_error(after), _LARGEST_ERROR), 4),
                "measurements": len(after),
            }
            for name, (before, after) in self.errors.items()
        }


def _range(found: Range) -> dict[str, float]:
    return {"low": found.low, "high": found.high}


def _run(run: ComparedRun) -> dict[str, Any]:
    one = run.measurement
    load = {"concurrency": one.concurrency, "request_rate": one.requests_per_second}
    names = {"tpot": "tpot_ms", "throughput": "output_tokens_per_second", "ttft": "ttft_ms"}
    return {
        "source": one.source,
        "input_tokens": round(one.prompt_tokens, 1),
        "output_tokens": round(one.output_tokens, 1),
        **{name: round(value, 4) for name, value in load.items() if value is not None},
        **{
            names[name]: {
                which: round(getattr(found, which) * (1 if name == "throughput" else _MS), 2)
                for which in ("measured", "before", "after")
            }
            for name, found in run.quantities.items()
        },
    }
