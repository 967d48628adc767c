"""estimate_trace(): recorded traffic replayed on one deployment, or on several equal ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from vllm_advisor.api.estimating import EstimateReport, check_counts, report_of
from vllm_advisor.api.replay_report import replay_data
from vllm_advisor.api.timed_engine import find_engine
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.parse.trace import Trace
from vllm_advisor.parse.trace_columns import Names
from vllm_advisor.sizing.replay import replay
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.replay import ReplayRequest

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration


def estimate_trace(
    model: str,
    trace: str | Path,
    *,
    gpu: str | Accelerator,
    stream: BinaryIO | None = None,
    gpu_count: int = 1,
    speedup: float = 1.0,
    replicas: int = 1,
    prompt_column: str | None = None,
    output_column: str | None = None,
    arrival_column: str | None = None,
    vllm_version: str | None = None,
    prefix_hit_rate: float = 0.0,
    fit: LatencyFit | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    **engine_args: Any,
) -> EstimateReport:
    """Latency and throughput of recorded traffic, request by request.

    Beside the replay stands the steady state of requests with the trace's mean lengths that arrive
    at its mean rate.

    Args:
        model: as in :func:`~vllm_advisor.estimate`; so are the others that are not named here.
        trace: CSV, one JSON object a line, or a JSON array; gzip or not; with times of arrival.
        gpu: GPU profile, NVML name or accelerator.
        stream: binary stream to read it from, when ``trace`` is only its name.
        gpu_count: GPUs of one deployment.
        speedup: how much faster the requests arrive than they did.
        replicas: equal deployments, which get the requests in turn.
        prompt_column: column with the length of the prompt, where its name is not known.
        output_column: column with the length of the answer, where its name is not known.
        arrival_column: column with the time of arrival, where its name is not known.
        vllm_version: default is the newest whose facts are known.
        prefix_hit_rate: of each prompt, the share that prefix caching finds, 0 to 1.
        fit: constants to use instead of the bundled ones.
        calibration: files of such constants, or of the memory that a start-up log says.
        **engine_args: vLLM's dest names.

    Raises:
        InputError: the trace or an argument cannot be used.
        InfeasibleError: vLLM would not start, or would refuse every request.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    _check(speedup, prefix_hit_rate)
    check_counts(replicas=replicas)
    engine = find_engine(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        fit=fit,
        calibration=calibration,
        engine_args=engine_args,
    )
    names = Names(
        prompt_column=prompt_column,
        output_column=output_column,
        arrival_column=arrival_column,
        required=("prompt_tokens", "output_tokens", "arrival"),
    )
    rows = Trace(str(trace), stream=stream, names=names)
    read = _read(rows, speedup, engine.settings.max_model_len)
    count = len(read.requests)
    prompt = sum(one.prompt for one in read.requests) / count
    output = sum(one.output for one in read.requests) / count
    station = engine.station(prompt, output, prefix_hit_rate)
    share = station.cached / station.prompt
    engines = engine.settings.data_parallel_size * replicas
    replayed = replay(
        station,
        [one._replace(cached=int(one.prompt * share)) for one in read.requests],
        engines=engines,
        kv_tokens=engine.kv_tokens(station, max(one.prompt + one.output for one in read.requests)),
    )
    load: dict[str, float] = {"input_tokens": round(prompt, 1), "output_tokens": round(output, 1)}
    if read.seconds:
        load["request_rate"] = (count - 1) / read.seconds
    else:
        load["concurrency"] = count
    if prefix_hit_rate:
        load["prefix_hit_rate"] = prefix_hit_rate
    if replicas > 1:
        load["replicas"] = replicas
    about = {
        "file": str(trace),
        "columns": dict(rows.columns),
        "ignored_columns": list(rows.ignored),
        "speedup": speedup,
        "seconds": round(read.seconds * speedup, 3),
        "without_tokens": read.without_tokens,
        "refused": read.refused,
        "cut": read.cut,
    }
    return report_of(
        engine,
        station,
        load,
        engines=engines,
        replay={"of": "trace", "trace": about, **replay_data(replayed)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Requests of a trace, from its first arrival on; how many were left out, or are shorter."""

    requests: list[ReplayRequest]
    seconds: float
    without_tokens: int
    refused: int
    cut: int


def _read(rows: Trace, speedup: float, max_model_len: int) -> _Read:
    """The requests that vLLM would take, as it would answer them.

    Raises:
        InputError: the trace cannot be read, or has no request with tokens.
        InfeasibleError: vLLM would refuse every request.
    """
    requests: list[ReplayRequest] = []
    without_tokens = refused = cut = 0
    for row in rows:
        prompt, output, arrival = row.prompt_tokens, row.output_tokens, row.arrival
        if not (prompt and output) or arrival is None:
            without_tokens += 1  # it failed, or was none
        elif prompt >= max_model_len:
            refused += 1
        else:
            cut += prompt + output > max_model_len
            output = min(output, max_model_len - prompt)
            requests.append(ReplayRequest(arrival / speedup, prompt, output))
    if not requests and refused:
        raise InfeasibleError(
            f"every prompt is longer than max_model_len {max_model_len:,} allows",
            where=rows.file,
            fix="a larger --max-model-len",
        )
    if not requests:
        raise InputError(
            "no request of it has a prompt and an answer",
            where=rows.file,
            fix="check its columns of tokens",
        )
    first = min(one.arrival for one in requests)
    moved = [one._replace(arrival=one.arrival - first) for one in requests]
    return _Read(
        requests=moved,
        seconds=max(one.arrival for one in moved),
        without_tokens=without_tokens,
        refused=refused,
        cut=cut,
    )


def _check(speedup: float, prefix_hit_rate: float) -> None:
    if not 0 < speedup < math.inf:
        raise InputError(f"speedup is {speedup}", where="speedup", fix="above 0")
    if not 0 <= prefix_hit_rate < 1:
        raise InputError(
            "prefix_hit_rate has no meaning",
            where="prefix_hit_rate",
            fix="a share from 0 up to, not including, 1",
        )
