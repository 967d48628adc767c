"""Summaries of genai-perf and of aiperf: an object for each metric, with ``avg`` and ``unit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vllm_advisor.parse.bench.fields import Fields
from vllm_advisor.parse.bench.loads import load_of
from vllm_advisor.types.measurement import Measured, Measurement

_LENGTHS = ("input_sequence_length", "output_sequence_length")
_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def is_genai_perf(fields: Fields) -> bool:
    """Whether these are its keys."""
    return any(isinstance(fields.data.get(key), Mapping) for key in _LENGTHS) and (
        "input_config" in fields.data or "request_throughput" in fields.data
    )


def read_genai_perf(fields: Fields, name: str) -> Measured:
    """The measurement of one run.

    Args:
        fields: the summary.
        name: what it is called.

    Raises:
        InputError: a figure is missing or has no meaning, or nothing says what the load was.
    """
    limit, rate = _asked(fields)
    if limit is None and rate is None:
        raise fields.wrong(
            "input_config",
            "neither a concurrency nor a request_rate is in it",
            fix="run with --concurrency or --request-rate, or use `vllm bench serve --save-result`",
        )
    load = load_of(
        limit=limit,
        rate=rate,
        served=_average(fields, "request_throughput", "rate"),
        requests=_average(fields, "request_count", "total"),
    )
    if load.refused:
        return Measured(notes=(f"{name} is left out: {load.refused}",))
    output = fields.inside(_LENGTHS[1]).needed("avg", "tokens")
    return Measured(
        measurements=(
            Measurement(
                source=name,
                prompt_tokens=fields.inside(_LENGTHS[0]).needed("avg", "tokens"),
                output_tokens=output,
                concurrency=load.concurrency,
                requests_per_second=load.requests_per_second,
                tpot=_seconds(fields, "inter_token_latency") if output >= 2 else None,
                ttft=_seconds(fields, "time_to_first_token"),
                tokens_per_second=_average(fields, "output_token_throughput", "rate"),
            ),
        )
    )


def _asked(fields: Fields) -> tuple[float | None, float | None]:
    """The limit of requests at once and the rate, from wherever a version writes them."""
    for place in _places(fields.inside("input_config")):
        if place.has("concurrency") or place.has("request_rate"):
            return place.number("concurrency", "concurrency"), place.number("request_rate", "rate")
    return None, None


def _places(config: Fields) -> Iterator[Fields]:
    yield config
    yield config.inside("loadgen")
    yield config.inside("perf_analyzer").inside("stimulus")
    phases = config.data.get("phases")
    if isinstance(phases, Mapping):
        yield config.inside("phases").inside("profiling")
    for index, phase in enumerate(phases if isinstance(phases, list) else ()):
        if isinstance(phase, Mapping) and phase.get("name", "profiling") == "profiling":
            yield Fields(config.file, phase, f"{config.path}.phases[{index}]")


def _average(fields: Fields, key: str, kind: str) -> float | None:
    return fields.inside(key).number("avg", kind)


def _seconds(fields: Fields, key: str) -> float | None:
    found = fields.inside(key)
    value = found.number("avg", "total")
    if value is None:
        return None
    factor = _SECONDS.get(found.text("unit") or "")
    if factor is None:
        raise found.wrong("unit", f"{str(found.data.get('unit'))[:40]!r} is no unit of time")
    if value * factor > 1e5:
        raise found.wrong("avg", "it is more than a day")
    return value * factor
