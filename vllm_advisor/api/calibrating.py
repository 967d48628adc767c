"""calibrate(): constants of latency from measurements of one's own server."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vllm_advisor.api.arguments import read_words
from vllm_advisor.api.calibration_report import CalibrationReport, Compared, ComparedRun
from vllm_advisor.api.measurement_files import read_measurements
from vllm_advisor.api.timed_engine import TimedEngine, find_engine
from vllm_advisor.api.writing import write_text
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.knowledge.calibrations import latency_calibration
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.calibration import (
    Refitted,
    calibrated,
    is_unloaded,
    misses_by_quantity,
    narrowed,
)
from vllm_advisor.sizing.refit import Observation
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyConstants, LatencyFit
from vllm_advisor.types.measurement import Measurement

_ABSURD = 1000


def calibrate(
    model: str,
    *,
    gpu: str | Accelerator,
    results: Sequence[str | Path],
    gpu_count: int = 1,
    vllm_version: str | None = None,
    prefix_hit_rate: float | None = None,
    fit: LatencyFit | None = None,
    **engine_args: Any,
) -> CalibrationReport:
    """Refit a few constants to measurements of one server; arguments describe that server.

    Args:
        model: Hub id, bundled name, folder with config.json, or path to a config.json.
        gpu: GPU profile, NVML name or accelerator.
        results: result files of ``vllm bench serve``, guidellm, genai-perf or aiperf, snapshots of
            ``/metrics``, or folders of these.
        gpu_count: GPUs; more than one without parallel sizes means TP over them.
        vllm_version: default is the newest whose facts are known.
        prefix_hit_rate: share of the prompts' tokens that prefix caching found, 0 to 1, where the
            files do not say.
        fit: constants to start from instead of the bundled ones.
        **engine_args: vLLM's dest names.

    Raises:
        InputError: a file or an argument has no meaning, or the server described cannot have
            served what was measured.
        InfeasibleError: vLLM would not start as described.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    if prefix_hit_rate is not None and not 0 <= prefix_hit_rate < 1:
        raise InputError(
            "prefix_hit_rate has no meaning",
            where="prefix_hit_rate",
            fix="a share from 0 up to, not including, 1",
        )
    measured = read_measurements(results)
    start = fit or load_latency()
    engine = find_engine(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        fit=start,
        engine_args=engine_args,
    )
    observations = [_observed(engine, one, prefix_hit_rate) for one in measured.measurements]
    for one, observed in zip(measured.measurements, observations, strict=True):
        _refuse_absurd(one, observed, start.constants)
    found = calibrated(start.constants, observations)
    before = misses_by_quantity(start.constants, observations)
    after = misses_by_quantity(found.constants, observations)
    runs = tuple(
        ComparedRun(
            measurement=one, quantities=_compared(observed, start.constants, found.constants)
        )
        for one, observed in zip(measured.measurements, observations, strict=True)
    )
    return CalibrationReport(
        model=engine.facts.model_id,
        gpu=engine.accelerator.id,
        gpus=engine.sized.settings.gpus,
        vllm_version=engine.sized.vllm_version,
        engine_args=engine.sized.engine_args,
        date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        start=start,
        constants=found.constants,
        ranges=narrowed(start.ranges, after, len(found.free)),
        free=found.free,
        runs=runs,
        errors={name: (before.get(name, misses), misses) for name, misses in after.items()},
        sources=tuple(dict.fromkeys(m.source.split("#")[0] for m in measured.measurements)),
        notes=(*measured.notes, *_notes(engine, found, measured.measurements)),
    )


def calibration_report(
    model: str,
    *,
    vllm_version: str | None,
    engine_args: dict[str, Any],
    words: Sequence[str] = (),
    calibration: str | Path | None = None,
    **given: Any,
) -> CalibrationReport:
    """What :func:`calibrate` says, from words of a command line.

    Args:
        model: as in :func:`calibrate`.
        vllm_version: vLLM version.
        engine_args: vLLM's dest names.
        words: more of them, as ``NAME=VALUE``; they win.
        calibration: an earlier calibration file to start from.
        **given: GPU and result files, as in :func:`calibrate`.
    """
    args = {**engine_args, **read_words(load_engine(vllm_version), words)}
    fit = latency_calibration(calibration) if calibration is not None else None
    return calibrate(model, vllm_version=vllm_version, fit=fit, **given, **args)


def write_calibration(
    report: CalibrationReport, path: str | Path, *, overwrite: bool = False
) -> None:
    """Write the calibration file, or nothing.

    Raises:
        OutputError: it cannot be written, or is there with other content.
    """
    write_text(report.text(), Path(path), overwrite=overwrite)


def _observed(engine: TimedEngine, one: Measurement, prefix_hit_rate: float | None) -> Observation:
    rate = one.prefix_hit_rate if prefix_hit_rate is None else prefix_hit_rate
    try:
        station = engine.station(one.prompt_tokens, one.output_tokens, rate or 0.0)
    except InfeasibleError as error:
        raise InputError(
            f"the server as described cannot have served this: {error.what}",
            where=one.source,
            fix="describe the server that was measured: --max-model-len",
        ) from None

    engines, at_once, arriving = engine.engines, one.concurrency, one.requests_per_second
    if at_once is not None:
        engines = max(1, min(engines, int(at_once)))  # the others of them stand idle
    return Observation(
        station=station,
        engines=engines,
        concurrency=None if at_once is None else max(1.0, at_once / engines),
        requests_per_second=None if arriving is None else arriving / engines,
        tpot=one.tpot,
        ttft=one.ttft,
        tokens_per_second=one.tokens_per_second,
    )


def _refuse_absurd(one: Measurement, observed: Observation, constants: LatencyConstants) -> None:
    """What is a thousand times off is no property of a server.

    Raises:
        InputError: a quantity is.
    """
    names = {"tpot": "time per output token", "throughput": "throughput", "ttft": "TTFT"}
    for name, miss in observed.misses(constants).items():
        waits = name == "ttft" and not is_unloaded(observed)  # for as long as the run lasted
        if abs(miss) > math.log(_ABSURD) and not waits:
            raise InputError(
                f"the {names[name]} is more than {_ABSURD:,} times off what is expected",
                where=one.source,
                fix="check the units of the file, and that the options describe the server",
            )


def _compared(
    observed: Observation, before: LatencyConstants, after: LatencyConstants
) -> dict[str, Compared]:
    misses, left = observed.misses(before), observed.misses(after)
    measured = {
        "tpot": observed.tpot,
        "throughput": observed.tokens_per_second,
        "ttft": observed.ttft,
    }
    return {
        name: Compared(
            measured=value,
            before=value * math.exp(misses[name]),
            after=value * math.exp(left[name]),
        )
        for name, value in measured.items()
        if value is not None
    }


def _notes(
    engine: TimedEngine, found: Refitted, measurements: Sequence[Measurement]
) -> Iterator[str]:
    if not found.free:
        yield "nothing that was measured depends on a constant that is calibrated: none changed"
    for name in found.at_limit:
        yield (
            f"{name} stopped at {getattr(found.constants, name):g}, the limit of what is possible: "
            f"check that {engine.accelerator.name} and the engine arguments are those of the server"
        )
    asked = engine.facts.model_id.rsplit("/", 1)[-1].lower()
    for name in sorted({m.model for m in measurements if m.model}):
        if name.rsplit("/", 1)[-1].lower() != asked:
            yield f"the files call the model {name}; it is taken to be {engine.facts.model_id}"
