"""estimate(): latency and throughput of one deployment under a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.second_opinion import ask, installed_version, question_of
from vllm_advisor.api.timed_engine import TimedEngine, find_engine
from vllm_advisor.errors import InputError
from vllm_advisor.sizing.performance import Performance, performance
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyFit, Span
from vllm_advisor.types.second_opinion import SecondOpinion
from vllm_advisor.types.source import Confidence

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration

_MS = 1000
ENOUGH_MEASUREMENTS = 4  # of a calibration, from which an estimate is held to be certain


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateReport:
    """The answer of :func:`estimate`; ``to_dict()`` is what the command line prints as JSON."""

    model: str
    gpu: str
    gpus: int
    vllm_version: str
    engine_args: dict[str, Any]
    load: dict[str, float]
    performance: Performance
    fit: LatencyFit
    not_modelled: tuple[str, ...]
    confidence: Confidence
    replay: dict[str, Any] | None = None
    second_opinion: SecondOpinion | None = None
    memory_calibration: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        p, other, memory = self.performance, self.second_opinion, self.memory_calibration
        return {
            "schema_version": "1",
            "model": self.model,
            "gpu": self.gpu,
            "gpus": self.gpus,
            "vllm_version": self.vllm_version,
            "engine_args": self.engine_args,
            "load": self.load,
            "ttft_ms": {
                "floor": _ms(p.ttft_floor),
                **self._first(p.ttft),
                "p50": self._first(p.ttft_p50),
                "p90": self._first(p.ttft_p90),
            },
            "tpot_ms": _span(p.tpot, _MS),
            "itl_ms": {
                "typical": _ms(p.tpot.point),
                "with_prompt": _ms(p.itl_full_step),
                "share_with_prompt": round(p.prompt_steps, 4),
            },
            "e2e_ms": self._first(p.e2e),
            "output_tokens_per_second": _span(p.output_tokens_per_second),
            "total_tokens_per_second": _span(p.output_tokens_per_second, self._total),
            "requests_per_second": round(p.requests_per_second, 4),
            "regime": p.regime.value,
            "saturated": p.saturated,
            "running": round(p.running, 1),
            "waiting": round(p.waiting, 1),
            "not_modelled": list(self.not_modelled),
            "constants": {
                **self.fit.constants.as_dict(),
                "origin": self.fit.origin,
                "date": self.fit.date,
            },
            "confidence": self.confidence.value,
            **({"second_opinion": other.to_dict()} if other else {}),
            **({"replay": self.replay} if self.replay is not None else {}),
            **({"memory_calibration": memory} if memory is not None else {}),
        }

    def _first(self, span: Span) -> dict[str, float | None]:
        """A time with waiting in it: none where requests wait without end."""
        if self.performance.saturated:
            return {"point": None, "low": None, "high": None}
        return {**_span(span, _MS)}

    @property
    def _total(self) -> float:
        """Input and output tokens for each of output."""
        return (self.load["input_tokens"] + self.load["output_tokens"]) / self.load["output_tokens"]


def estimate(
    model: str,
    *,
    gpu: str | Accelerator,
    gpu_count: int = 1,
    input_tokens: int,
    output_tokens: int,
    concurrency: float | None = None,
    request_rate: float | None = None,
    vllm_version: str | None = None,
    prefix_hit_rate: float = 0.0,
    replicas: int = 1,
    simulated_requests: int | None = None,
    fit: LatencyFit | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    second_opinion: str | None = None,
    **engine_args: Any,
) -> EstimateReport:
    """Latency and throughput of one deployment.

    Args:
        model: Hub id, bundled name, folder with config.json, or path to a config.json.
        gpu: GPU profile, NVML name or accelerator.
        gpu_count: GPUs; more than one without parallel sizes means TP over them.
        input_tokens: mean tokens of a prompt.
        output_tokens: mean tokens of an answer.
        concurrency: requests in the system at all times; 1 where no load is given.
        request_rate: requests per second, arriving at random.
        vllm_version: default is the newest whose facts are known.
        prefix_hit_rate: share of the prompt's tokens that prefix caching finds, 0 to 1.
        replicas: equal deployments that share the load.
        simulated_requests: requests of this load to replay, for its tails.
        fit: constants to use instead of the bundled ones (see ``vllm-advisor calibrate``).
        calibration: files of such constants, or of the memory that a start-up log says (see
            ``vllm-advisor report``).
        second_opinion: another tool to ask the same: ``aiconfigurator``. Its answer stands beside
            ours and changes nothing of it.
        **engine_args: vLLM's dest names.

    Where more requests arrive than are served, ``saturated`` is true, there is no TTFT, and the
    throughput is the most there is.

    Raises:
        InputError: an argument has no meaning, or the tool of the second opinion is not installed.
        InfeasibleError: vLLM would not start, or the request does not fit.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    _check(input_tokens, output_tokens, concurrency, request_rate, prefix_hit_rate)
    check_counts(replicas=replicas, simulated_requests=simulated_requests)
    if second_opinion is not None:
        installed_version(second_opinion)
    engine = find_engine(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        fit=fit,
        calibration=calibration,
        engine_args=engine_args,
    )
    load: dict[str, float] = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    if request_rate is not None:
        load["request_rate"] = request_rate
    else:
        load["concurrency"] = concurrency or 1
    if prefix_hit_rate:
        load["prefix_hit_rate"] = prefix_hit_rate
    if replicas > 1:
        load["replicas"] = replicas
    station = engine.station(input_tokens, output_tokens, prefix_hit_rate)
    engines = engine.settings.data_parallel_size * replicas
    replayed = None
    if simulated_requests is not None:
        from vllm_advisor.api.simulating import simulated_load  # noqa: PLC0415 - seldom asked for

        replayed = simulated_load(engine, station, load, simulated_requests, engines)
    other = None
    if second_opinion is not None:
        asked = question_of(
            model,
            engine.facts,
            engine.settings,
            engine.layout,
            engine.accelerator,
            load=load,
            cached=station.cached,
        )
        other = ask(second_opinion, asked)
    return report_of(engine, station, load, engines=engines, replay=replayed, other=other)


def report_of(
    engine: TimedEngine,
    station: Station,
    load: dict[str, float],
    *,
    engines: int,
    replay: dict[str, Any] | None,
    other: SecondOpinion | None = None,
) -> EstimateReport:
    """The steady state of so many engines under a load, with what a replay of it said."""
    settings, notes = engine.settings, engine.notes
    return EstimateReport(
        model=engine.facts.model_id,
        gpu=engine.accelerator.id,
        gpus=settings.gpus,
        vllm_version=engine.sized.vllm_version,
        engine_args=engine.sized.engine_args,
        load=load,
        performance=performance(
            station,
            engine.fit,
            engines=engines,
            concurrency=load.get("concurrency"),
            requests_per_second=load.get("request_rate"),
        ),
        fit=engine.fit,
        not_modelled=(*notes, *_of_other_model(engine)),
        confidence=_confidence(notes, engine),
        replay=replay,
        second_opinion=other,
        memory_calibration=engine.sized.calibration_dict(),
    )


def _of_other_model(engine: TimedEngine) -> tuple[str, ...]:
    """What is to be known of a calibration, and lowers nothing: it is better than none."""
    on = engine.fit.calibrated_on
    if on is None or on.model == engine.facts.model_id:
        return ()
    return (f"calibrated with {on.model}, not with this model",)


def _confidence(notes: tuple[str, ...], engine: TimedEngine) -> Confidence:
    """High where the same model was measured on the same GPU, often enough."""
    if notes:
        return Confidence.LOW
    on = engine.fit.calibrated_on
    known = on is not None and on.model == engine.facts.model_id
    if known and on is not None and on.measurements >= ENOUGH_MEASUREMENTS:
        return Confidence.HIGH
    return Confidence.MEDIUM


def _check(
    input_tokens: int,
    output_tokens: int,
    concurrency: float | None,
    request_rate: float | None,
    prefix_hit_rate: float,
) -> None:
    wrong = {
        "input_tokens": input_tokens < 1,
        "output_tokens": output_tokens < 1,
        "concurrency": concurrency is not None and not 1 <= concurrency < float("inf"),
        "request_rate": request_rate is not None and not 0 < request_rate < float("inf"),
        "prefix_hit_rate": not 0 <= prefix_hit_rate < 1,
    }
    for name, bad in wrong.items():
        if bad:
            raise InputError(f"{name} has no meaning", where=name, fix=_RANGES[name])
    if concurrency is not None and request_rate is not None:
        raise InputError(
            "concurrency and request_rate are two kinds of load",
            where="request_rate",
            fix="give one of them",
        )


def check_counts(**counts: int | None) -> None:
    """Numbers of things to make or to serve.

    Raises:
        InputError: one is not from 1 to a million.
    """
    for name, count in counts.items():
        if count is not None and not 1 <= count <= _MOST:
            raise InputError(f"{name} is {count}", where=name, fix=f"from 1 to {_MOST:,}")


_MOST = 1_000_000
_RANGES = {
    "input_tokens": "at least 1",
    "output_tokens": "at least 1",
    "concurrency": "at least 1",
    "request_rate": "above 0",
    "prefix_hit_rate": "a share from 0 up to, not including, 1",
}


def _ms(seconds: float) -> float:
    return round(seconds * _MS, 2)


def _span(span: Span, factor: float = 1.0) -> dict[str, float]:
    return {
        "point": round(span.point * factor, 2),
        "low": round(span.low * factor, 2),
        "high": round(span.high * factor, 2),
    }
