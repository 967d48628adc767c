"""Calibration files: constants of latency that were refitted to one server, and how that went.

``vllm-advisor calibrate`` writes them. Each constant stands beside the bundled one it replaces, so
that a file made with other bundled constants is noticed. Everything is checked when it is read:
people edit such files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.knowledge.workload_values import Keys, Line, Problem
from vllm_advisor.types.latency import (
    CALIBRATED_BOUNDS,
    CalibratedOn,
    LatencyConstants,
    LatencyFit,
    Range,
)
from vllm_advisor.types.source import Source, SourceKind

SCHEMA_VERSION = "1"
_FIX = "name a file that `vllm-advisor calibrate --output FILE` wrote"
_SAME = 1e-6  # relative difference of two bundled constants that are the same

_Ratio = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
_Error = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Number = Annotated[int, Field(ge=1, le=1_000_000)]


class ConstantKeys(Keys):
    """A constant, bundled and as it was found."""

    before: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="The bundled constant."
    )
    after: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="The one of this server."
    )


class RangeKeys(Keys):
    """What 80 % of measurements are, as multiples of the estimate."""

    low: _Ratio = Field(description="The 10th percentile of measured / estimated.")
    high: _Ratio = Field(description="The 90th percentile of measured / estimated.")

    def problems(self) -> Iterator[Problem]:
        """The two have to be in order."""
        if self.low > self.high:
            what = f"{self.high:g} is below low, which is {self.low:g}"
            yield Problem(path=("high",), what=what, fix="keep low <= high")


class ErrorKeys(Keys):
    """Median error of one quantity over the measurements, as a share."""

    before: _Error = Field(description="With the constants that the calibration started from.")
    after: _Error = Field(description="With the constants found.")
    measurements: _Number = Field(description="Over how many measurements.")


class CalibrationKeys(Keys):
    """Constants of one server."""

    model_config = ConfigDict(title="vllm-advisor calibration")

    schema_version: Literal["1"] = Field(description='Version of this form, in quotes: "1".')
    kind: Literal["latency"] = Field(
        default="latency", description="latency, or left out: it is none of memory."
    )
    advisor_version: Line = Field(description="Version of vllm-advisor that wrote it.")
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = Field(
        description="When it was made, in quotes: year-month-day."
    )
    gpu: Line = Field(description="GPU profile of the server.")
    gpus: _Number = Field(description="GPUs of the server.")
    model: Line = Field(description="Model that was served.")
    vllm_version: Line = Field(description="Version of vLLM.")
    engine_args: dict[Line, Any] = Field(description="Engine arguments of the server.")
    measurements: _Number = Field(description="How many there were, with those before.")
    sources: list[Line] = Field(min_length=1, max_length=10_000, description="Files, by name.")
    started_from: Line = Field(description="The fit that was the prior.")
    constants: dict[str, ConstantKeys] = Field(description="Those that changed, by name.")
    ranges: dict[str, RangeKeys] = Field(description="Ranges of 80 % of measurements.")
    errors: dict[str, ErrorKeys] = Field(description="Median error before and after.")

    def problems(self) -> Iterator[Problem]:
        """Known names, possible values, and the bundled constants of this version."""
        bundled = load_latency()
        known = bundled.constants.as_dict()
        for name, constant in self.constants.items():
            if name not in CALIBRATED_BOUNDS:
                fix = f"constants that can be calibrated: {', '.join(CALIBRATED_BOUNDS)}"
                yield Problem(path=("constants", name), what="is an unknown key", fix=fix)
                continue
            low, high = CALIBRATED_BOUNDS[name]
            if not low <= constant.after <= high:
                what = f"{constant.after:g} is outside of {low:g} to {high:g}"
                path = ("constants", name, "after")
                yield Problem(path=path, what=what, fix="calibrate again")
            if not math.isclose(constant.before, known[name], rel_tol=_SAME):
                what = f"{constant.before:g} is not the bundled constant, which is {known[name]:g}"
                fix = "this file was made with other bundled constants: calibrate again"
                yield Problem(path=("constants", name, "before"), what=what, fix=fix)
        for name in self.ranges:
            if name not in bundled.ranges:
                fix = f"known ranges: {', '.join(bundled.ranges)}"
                yield Problem(path=("ranges", name), what="is an unknown key", fix=fix)


def fit_of(keys: CalibrationKeys, *, file: str) -> LatencyFit:
    """The fit that a checked file stands for; ``file`` is its name."""
    bundled = load_latency()
    after = {name: constant.after for name, constant in keys.constants.items()}
    ranges = {name: Range(low=r.low, high=r.high) for name, r in keys.ranges.items()}
    constants: LatencyConstants = replace(bundled.constants, **after)
    return LatencyFit(
        constants=constants,
        ranges={**bundled.ranges, **ranges},
        origin=f"{keys.measurements} measurement{'s' if keys.measurements > 1 else ''} of "
        f"{keys.model} on {keys.gpu} (calibrated), from {bundled.origin}",
        date=keys.date,
        sample=keys.measurements,
        gpus=bundled.gpus | {keys.gpu},
        source=Source(SourceKind.MEASURED, f"{file}#constants"),
        calibrated_on=CalibratedOn(
            gpu=keys.gpu, model=keys.model, measurements=keys.measurements, file=file
        ),
    )
