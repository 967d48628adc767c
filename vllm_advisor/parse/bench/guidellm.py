"""Reports of guidellm: a list of benchmarks, each with its strategy and its metrics.

The strategy stands under ``args``, ``scheduler`` or ``config``, by version. guidellm's time per
output token has the wait for the first one in it; its inter-token latency is what vLLM calls TPOT.
Its output tokens per second are a request's in one version and the server's in another, so the
throughput is taken from the requests per second. A metric that nobody measured, such as TTFT
without streaming, is written as zero over no requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from vllm_advisor.errors import InputError
from vllm_advisor.parse.bench.fields import Fields
from vllm_advisor.parse.bench.loads import Load, load_of
from vllm_advisor.types.measurement import Measured, Measurement

_CLOSED = ("synchronous", "concurrent", "throughput")
_OPEN = ("constant", "poisson", "async")
_HOLDERS = ("config", "args", "scheduler")
_MS = 1000


def is_guidellm(fields: Fields) -> bool:
    """Whether these are its keys."""
    return isinstance(fields.data.get("benchmarks"), list)


def read_guidellm(fields: Fields, name: str) -> Measured:
    """The measurements of a report.

    Args:
        fields: the report.
        name: what it is called.

    Raises:
        InputError: a benchmark has no metrics or strategy that is known, or a figure of it has no
            meaning.
    """
    found, notes = [], []
    for index, one in enumerate(fields.data["benchmarks"]):
        place = f"benchmarks[{index}]"
        if not isinstance(one, Mapping) or not isinstance(one.get("metrics"), Mapping):
            raise InputError(
                "this benchmark has no metrics",
                where=f"{fields.file}: {place}",
                fix="give the JSON report of guidellm 0.2 or newer",
            )
        benchmark = Fields(fields.file, one, place)
        called = f"{name}#{index + 1}" if len(fields.data["benchmarks"]) > 1 else name
        load = _load(benchmark)
        if load.refused:
            notes.append(f"{called} is left out: {load.refused}")
            continue
        metrics = benchmark.inside("metrics")
        output = _needed(metrics, "output_token_count", "tokens")
        found.append(
            Measurement(
                source=called,
                prompt_tokens=_needed(metrics, "prompt_token_count", "tokens"),
                output_tokens=output,
                concurrency=load.concurrency,
                requests_per_second=load.requests_per_second,
                tpot=_seconds(metrics, "inter_token_latency_ms") if output >= 2 else None,
                ttft=_seconds(metrics, "time_to_first_token_ms"),
                tokens_per_second=_per_second(metrics, output),
            )
        )
    return Measured(measurements=tuple(found), notes=tuple(notes))


def _load(benchmark: Fields) -> Load:
    strategy = next(
        (
            found
            for holder in _HOLDERS
            if (found := benchmark.inside(holder).inside("strategy")).data
        ),
        benchmark.inside("config").inside("strategy"),
    )
    kind = strategy.text("type_")
    if kind in _OPEN:  # its max_concurrency is how many its workers could send, no limit
        return Load(requests_per_second=strategy.needed("rate", "rate"))
    if kind not in _CLOSED:
        raise strategy.wrong(
            "type_",
            f"{str(kind)[:40]!r} is no load that is understood" if kind else "it is missing",
            fix=f"measure with one of {', '.join((*_CLOSED, *_OPEN))}",
        )
    limit = 1.0 if kind == "synchronous" else strategy.number("streams", "concurrency")
    if limit is None:
        limit = strategy.number("max_concurrency", "concurrency")
    totals = next(
        (
            found
            for holder in (benchmark.inside("metrics"), benchmark)
            if (found := holder.inside("request_totals")).data
        ),
        benchmark.inside("request_totals"),
    )
    requests = totals.number("successful", "total")
    return load_of(limit=limit, rate=None, served=None, requests=requests)


def _per_second(metrics: Fields, output: float) -> float | None:
    served = _mean(metrics, "requests_per_second", "rate")
    return None if served is None else served * output


def _of_successful(metrics: Fields, key: str) -> Fields:
    """A metric over the requests that succeeded."""
    found = metrics.inside(key)
    return found.inside("successful") if found.has("successful") else found


def _mean(metrics: Fields, key: str, kind: str) -> float | None:
    found = _of_successful(metrics, key)
    return None if found.data.get("count") == 0 else found.number("mean", kind)


def _needed(metrics: Fields, key: str, kind: str) -> float:
    return _of_successful(metrics, key).needed("mean", kind)


def _seconds(metrics: Fields, key: str) -> float | None:
    value = _mean(metrics, key, "ms")
    return None if value is None else value / _MS
