"""Gauges of some time, engine by engine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from vllm_advisor.parse.metrics.names import (
    CACHE_CONFIG,
    ENGINE_INFO,
    GAUGES,
    RUNNING,
    WAITING,
    present,
)
from vllm_advisor.parse.metrics.samples import Sample, amount
from vllm_advisor.types.observation import Gauge, ObservedEngine

_PLACE = ("namespace", "pod", "instance", "engine")  # what tells engines apart
_FIX = "read the metrics again"


def engine_name(labels: Mapping[str, str]) -> str:
    """What an engine is called: the labels that say where it runs, and its number."""
    return "/".join(labels[key] for key in _PLACE if labels.get(key))


def levels(readings: Sequence[Sequence[Sample]], *, where: str) -> tuple[ObservedEngine, ...]:
    """Every engine over all readings; its mean is that of the readings it is in.

    Raises:
        InputError: a value has no meaning.
    """
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for samples in readings:
        known = {s.name for s in samples}
        names = {present(given, known): gauge for gauge, given in GAUGES.items()}
        for sample in samples:
            gauge = names.get(sample.name)
            if gauge is not None:
                value = amount(sample, where=where, fix=_FIX)
                seen[engine_name(sample.labels)][gauge].append(value)
    last = readings[-1] if readings else ()
    return tuple(
        ObservedEngine(
            name=name,
            **{gauge: _level(values) for gauge, values in gauges.items()},
            kv_cache_tokens=cache_tokens(last, name),
        )
        for name, gauges in sorted(seen.items())
    )


def in_system(readings: Sequence[Sequence[Sample]], *, where: str) -> Gauge:
    """Requests that ran or waited, over all engines."""
    return _level(
        [
            math.fsum(
                amount(s, where=where, fix=_FIX) for s in samples if s.name in (RUNNING, WAITING)
            )
            for samples in readings
        ]
    )


def cache_tokens(samples: Iterable[Sample], engine: str) -> int | None:
    """The size of an engine's KV cache as its server says it; None where it does not."""
    # Blocks times their size are no tokens where layers differ in kind, and nothing here tells.
    stated = cache_config(samples, engine).get("kv_cache_size_tokens", "")
    return int(stated) if stated.isdecimal() else None


def engine_info(samples: Iterable[Sample]) -> tuple[Mapping[str, str], ...]:
    """What the plugin says of each engine: its GPU, how many, and its settings."""
    return tuple(s.labels for s in samples if s.name == ENGINE_INFO and s.value == 1)


def cache_config(samples: Iterable[Sample], engine: str | None = None) -> Mapping[str, str]:
    """The labels of ``vllm:cache_config_info`` of an engine, or of the first there is."""
    for sample in samples:
        same = engine is None or engine_name(sample.labels) == engine
        if sample.name == CACHE_CONFIG and same:
            return sample.labels
    return {}


def _level(values: Sequence[float]) -> Gauge:
    return Gauge(mean=math.fsum(values) / len(values), largest=max(values), samples=len(values))
