"""Counts of some time: the growth of counters and histograms between two readings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vllm_advisor.errors import InputError
from vllm_advisor.parse.metrics.names import COUNTERS, HISTOGRAMS, present
from vllm_advisor.parse.metrics.samples import Sample, amount
from vllm_advisor.types.observation import Counts, Histogram

_FIX = "name the address of vLLM itself, or of the Prometheus that reads it"
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How much counters grew; ``restarted`` where one fell, which counts from 0 again."""

    samples: tuple[Sample, ...]
    restarted: bool = False


def growth(first: Iterable[Sample], last: Iterable[Sample]) -> Growth:
    """What was counted between two readings of the same servers."""
    before = {_key(sample): sample.value for sample in first}
    found, restarted = [], False
    for sample in last:
        value = sample.value - before.get(_key(sample), 0.0)
        if value < 0:
            value, restarted = sample.value, restarted or _counts(sample.name)
        found.append(Sample(name=sample.name, labels=sample.labels, value=value, line=sample.line))
    return Growth(samples=tuple(found), restarted=restarted)


def counted(samples: Iterable[Sample], *, where: str) -> Counts:
    """What the growth of the counters says.

    Raises:
        InputError: no request ended, what is there contradicts itself, or has no lengths.
    """
    samples = tuple(samples)

    def sizes(quantity: str) -> Histogram | None:
        return histogram(samples, quantity, where=where)

    def count(counter: str) -> float | None:
        return total(samples, COUNTERS[counter], where=where)

    prompts, outputs = sizes("prompt_tokens"), sizes("output_tokens")
    if prompts is None or outputs is None:
        raise InputError(
            "these metrics have no lengths of requests; a router's do not", where=where, fix=_FIX
        )
    if not prompts.count or not outputs.count:
        raise InputError(
            "no request ended in that time, so that there are no lengths",
            where=where,
            fix="watch longer (--window 10m), or take all since the start (--since-start)",
        )
    finished = by_label(samples, COUNTERS["finished"], "finished_reason", where=where)
    return Counts(
        finished=finished or {"": prompts.count},
        prompt_tokens=prompts,
        output_tokens=outputs,
        ttft=sizes("ttft"),
        itl=sizes("itl"),
        e2e=sizes("e2e"),
        queue=sizes("queue"),
        step_tokens=sizes("step_tokens"),
        preemptions=count("preemptions"),
        prefix_queries=count("prefix_queries"),
        prefix_hits=count("prefix_hits"),
        drafts=count("drafts"),
    )


def total(samples: Iterable[Sample], names: Sequence[str], *, where: str) -> float | None:
    """The sum over all labels of the first of the names that is there; None if none is.

    Raises:
        InputError: a value has no meaning.
    """
    samples = tuple(samples)
    name = present(names, (s.name for s in samples))
    if name is None:
        return None
    return math.fsum(amount(s, where=where, fix=_FIX) for s in samples if s.name == name)


def by_label(
    samples: Iterable[Sample], names: Sequence[str], label: str, *, where: str
) -> dict[str, float]:
    """The sums for each value of a label, without those that are 0."""
    samples = tuple(samples)
    name = present(names, (s.name for s in samples))
    found: dict[str, float] = defaultdict(float)
    for sample in samples:
        if sample.name == name:
            found[sample.labels.get(label, "")] += amount(sample, where=where, fix=_FIX)
    return {value: count for value, count in sorted(found.items()) if count}


def histogram(samples: Iterable[Sample], quantity: str, *, where: str) -> Histogram | None:
    """One of vLLM's histograms, over all engines; None where it is not there.

    Args:
        samples: how much they grew.
        quantity: a key of ``names.HISTOGRAMS``.
        where: what errors call the place.

    Raises:
        InputError: its buckets contradict each other, or a value has no meaning.
    """
    samples = tuple(samples)
    name = present(HISTOGRAMS[quantity], (s.name.removesuffix("_bucket") for s in samples))
    if name is None:
        return None
    up_to: dict[float, float] = defaultdict(float)
    for sample in samples:
        if sample.name == f"{name}_bucket":
            up_to[_edge(sample, where)] += amount(sample, where=where, fix=_FIX)
    edges = sorted(up_to)
    sums = total(samples, (f"{name}_sum",), where=where)
    if not edges or not math.isinf(edges[-1]) or sums is None:
        raise InputError(f"{name} is no whole histogram", where=where, fix=_FIX)
    counts, below = [], 0.0
    for edge in edges:
        # Prometheus extrapolates each bucket by itself, so that one may end up below another.
        counts.append(max(0.0, up_to[edge] - below))
        below = max(below, up_to[edge])
    return Histogram(edges=tuple(edges), counts=tuple(counts), total=sums)


def _edge(sample: Sample, where: str) -> float:
    try:
        edge = float(sample.labels["le"])
    except (KeyError, ValueError):
        edge = math.nan
    if math.isnan(edge):
        raise InputError(f"a bucket of {sample.name} has no edge", where=where, fix=_FIX)
    return edge


def _counts(name: str) -> bool:
    """Whether a metric only ever grows."""
    return name.endswith(("_total", "_count", "_sum", "_bucket"))


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))
