"""A vLLM server watched for some time through its ``/metrics``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from vllm_advisor.errors import AdvisorError, UnknownFactError
from vllm_advisor.parse.metrics import names
from vllm_advisor.parse.metrics.levels import cache_config, engine_info, in_system, levels
from vllm_advisor.parse.metrics.samples import Sample, models_of, read_samples
from vllm_advisor.parse.metrics.window import Growth, counted, growth, total
from vllm_advisor.types.observation import Gauge, Observed, ObservedEngine
from vllm_advisor.verify.client import OpenAIClient
from vllm_advisor.verify.transport import Reply, printable, request

_READINGS = 12  # of a window, as long as they are not closer to each other than a second
_CLOSEST = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a server said of itself, ``age`` seconds after its start where that is known."""

    samples: tuple[Sample, ...]
    age: float | None


def read_server(url: str, *, timeout: float, headers: Mapping[str, str]) -> Reading | None:
    """What ``/metrics`` says; None if it is not vLLM that answers.

    Raises:
        UnknownFactError: nothing answers.
    """
    sent = {"user-agent": "vllm-advisor", **headers}
    reply = request(f"{url}/metrics", timeout=timeout, headers=sent)
    samples = tuple(read_samples(reply.body.decode("utf-8", errors="replace")))
    if reply.status != HTTPStatus.OK or not any(s.name == names.RUNNING for s in samples):
        return None
    started = total(samples, (names.STARTED,), where=f"{url}/metrics")
    return Reading(samples=samples, age=_clock(reply) - started if started else None)


def watch(
    first: Reading,
    *,
    url: str,
    seconds: float | None,
    client: OpenAIClient,
    said: Callable[[str], None],
) -> Observed:
    """What a server does in ``seconds``, or has done since its start.

    Args:
        first: the first reading.
        url: of the server, without ``/metrics``.
        seconds: how long to watch; None for all since the start, as it was read already.
        client: for what the server says of its model.
        said: told what goes on.

    Raises:
        InputError: no request ended, or a value has no meaning.
        UnknownFactError: it answers no longer, or does not say when it started.
    """
    where = f"{url}/metrics"
    if seconds is None:
        if first.age is None or first.age <= 0:
            raise UnknownFactError(
                "the server does not say when it started",
                where=f"{where}: {names.STARTED}",
                fix="watch it for some time instead: --window 5m",
            )
        readings, elapsed = [first], first.age
        grown, came = Growth(samples=first.samples), 0.0
    else:
        readings, elapsed = _readings(first, url, seconds, client, said)
        grown = growth(first.samples, readings[-1].samples)
    series = [reading.samples for reading in readings]
    last = series[-1]
    counts = counted(grown.samples, where=where)
    engines = levels(series, where=where)
    if seconds is None:
        engines = _with_peaks(engines, last, where)
    else:
        came = in_system(series[-1:], where=where).mean - in_system(series[:1], where=where).mean
    rate = max(0.0, counts.requests + came) / elapsed
    served = _served(url, client)
    return Observed(
        source=url,
        kind="server",
        model=next(iter(models_of(last)), ""),
        seconds=elapsed,
        since_start=seconds is None,
        engines=engines,
        counts=counts,
        requests_per_second=rate,
        peak_requests_per_second=rate,
        peak_seconds=elapsed,
        in_system=in_system(series, where=where),
        engines_now=len(engines),
        longest_prompt=longest(last, names.LONGEST_PROMPT),
        longest_output=longest(last, names.LONGEST_OUTPUT),
        cache_config=cache_config(last),
        engine_info=engine_info(last),
        max_model_len=served.max_model_len,
        vllm_version=served.version,
        served_from=served.root,
        notes=(*_notes(grown, since_start=seconds is None), *served.notes),
    )


def longest(samples: tuple[Sample, ...], name: str) -> int | None:
    """The largest value of one of the plugin's gauges; None where no engine has it, or it is 0."""
    found = [s.value for s in samples if s.name == name and 1 <= s.value < 1e9]
    return round(max(found)) if found else None


def _readings(
    first: Reading,
    url: str,
    seconds: float,
    client: OpenAIClient,
    said: Callable[[str], None],
) -> tuple[list[Reading], float]:
    """Readings over the window, and how long it was in the end."""
    begun = time.monotonic()
    every = max(_CLOSEST, seconds / _READINGS)
    said(f"watching {url} for {seconds:g} s")
    found = [first]
    while True:
        left = begun + seconds - time.monotonic()
        time.sleep(max(0.0, left if left < 1.5 * every else every))
        now = time.monotonic()
        reading = read_server(url, timeout=client.timeout, headers=client.headers)
        if reading is None:
            raise UnknownFactError(
                "the server no longer shows its metrics",
                where=f"{url}/metrics",
                fix="see in its log what happened; then run this again",
            )
        found.append(reading)
        if now >= begun + seconds:
            return found, now - begun


def _with_peaks(
    engines: tuple[ObservedEngine, ...], samples: tuple[Sample, ...], where: str
) -> tuple[ObservedEngine, ...]:
    """The engines with the peaks that the plugin counted since the start, where it did."""

    def peak(engine: str, gauge: str, level: Gauge) -> Gauge:
        own = [s for s in samples if s.labels.get("engine") == engine]
        seen = total(own, (names.PEAKS[gauge],), where=where)
        return level if seen is None else replace(level, largest=max(level.largest, seen))

    return tuple(
        replace(
            engine,
            running=peak(engine.name, "running", engine.running),
            waiting=peak(engine.name, "waiting", engine.waiting),
            kv_cache_usage=peak(engine.name, "kv_cache_usage", engine.kv_cache_usage),
        )
        for engine in engines
    )


def _notes(grown: Growth, *, since_start: bool) -> tuple[str, ...]:
    notes = []
    if grown.restarted:
        notes.append("the server started anew while it was watched; it counts from 0 since then")
    if since_start:
        notes.append(
            "the rate is the mean since the start, and what runs and waits is of one moment: a "
            "window at the busiest hour says more of a peak"
        )
    else:
        notes.append("the rate is that of the time watched: it is the peak's only if that was one")
    return tuple(notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    max_model_len: int | None = None
    root: str | None = None
    version: str | None = None
    notes: tuple[str, ...] = ()


def _served(url: str, client: OpenAIClient) -> _Served:
    """What the server says of itself beside its metrics; what it refuses to say is a note."""
    notes = []
    length, root, version = None, None, None
    try:
        first = next(iter(client.models()), None)
        if first is not None:
            length, root = first.max_model_len, first.root
    except AdvisorError as error:
        notes.append(f"the model's length is not known: {error.what} ({error.where})")
    try:
        sent = {"user-agent": "vllm-advisor", **client.headers}
        version = _version(request(f"{url}/version", timeout=client.timeout, headers=sent))
    except AdvisorError as error:
        notes.append(f"vLLM's version is not known: {error.what} ({error.where})")
    return _Served(max_model_len=length, root=root, version=version, notes=tuple(notes))


def _version(reply: Reply) -> str | None:
    try:
        data: Any = json.loads(reply.body) if reply.status == HTTPStatus.OK else None
    except (ValueError, RecursionError):
        return None
    version = data.get("version") if isinstance(data, dict) else None
    return printable(version)[:40] if isinstance(version, str) else None


def _clock(reply: Reply) -> float:
    """The server's own time, or ours where it does not say."""
    try:
        stated: datetime = parsedate_to_datetime(reply.headers["date"])
    except (KeyError, TypeError, ValueError):
        return time.time()
    return stated.timestamp()
