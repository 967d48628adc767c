"""What Prometheus remembers of vLLM servers over some time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.parse.metrics import names
from vllm_advisor.parse.metrics.levels import cache_config, cache_tokens, engine_info, engine_name
from vllm_advisor.parse.metrics.samples import Sample, amount
from vllm_advisor.parse.metrics.window import counted
from vllm_advisor.types.observation import NOTHING, Gauge, Observed, ObservedEngine
from vllm_advisor.verify.prometheus import Prometheus
from vllm_advisor.verify.watching import longest

_PEAK = 300.0  # seconds over which the highest rate is taken
_STEPS = 5  # of that, at which it is looked for
_MOST_OF_IT = 0.9
_POINTS = 1000  # of a window, at which sums of gauges are looked at, if they are a second apart
_FIX = "ask for another --window"


def remembered(prometheus: Prometheus, *, seconds: float, model: str | None) -> Observed:
    """What the chosen servers of one model did in the last ``seconds``.

    Args:
        prometheus: which to ask.
        seconds: how far back.
        model: name of the served model, where the servers are of several.

    Raises:
        InputError: there are several models, or none of that name; no request ended.
        UnknownFactError: Prometheus does not answer, or knows no vLLM.
    """
    name = _model(prometheus, model, seconds)
    asks = _Window(prometheus=prometheus, model=name, seconds=seconds)
    counts = counted(asks.growth(), where=prometheus.url)
    covered = asks.covered()
    peak_seconds = min(_PEAK, covered)
    finished = prometheus.selector(names.COUNTERS["finished"][0], asks.of_model)
    rate = counts.requests / covered
    peak = _one(
        prometheus.query(
            f"max_over_time(sum(rate({finished}[{_duration(peak_seconds)}]))"
            f"[{_duration(seconds)}:{_duration(peak_seconds / _STEPS)}])"
        )
    )
    # vLLM does not name the model in this one: only those of this model's engines are taken.
    infos = asks.last(names.CACHE_CONFIG)
    engines = asks.engines(infos)
    notes = ["Prometheus extrapolates counts to the whole time (increase), so they are no integers"]
    if covered < _MOST_OF_IT * seconds:
        notes.append(
            f"Prometheus remembers {covered:,.0f} s of these servers, not the {seconds:,.0f} s "
            "asked for"
        )
    return Observed(
        source=prometheus.url,
        kind="prometheus",
        model=name,
        seconds=covered,
        since_start=False,
        engines=engines,
        counts=counts,
        requests_per_second=rate,
        peak_requests_per_second=max(rate, peak or 0.0),
        peak_seconds=peak_seconds,
        in_system=asks.in_system(),
        longest_prompt=longest(asks.largest(names.LONGEST_PROMPT), names.LONGEST_PROMPT),
        longest_output=longest(asks.largest(names.LONGEST_OUTPUT), names.LONGEST_OUTPUT),
        cache_config=cache_config(infos, engines[0].name) if engines else {},
        engine_info=engine_info(asks.now(names.ENGINE_INFO)),
        engines_now=len(asks.now(names.RUNNING)) or len(engines),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """Questions about one model over the last ``seconds``."""

    prometheus: Prometheus
    model: str
    seconds: float

    @property
    def of_model(self) -> str:
        """The matcher of the model's name."""
        return f"model_name={json.dumps(self.model, ensure_ascii=False)}"

    def over(self, function: str, name: str) -> tuple[Sample, ...]:
        """A function over a metric's values, each sample with the metric's name."""
        asked = self.prometheus.selector(name, self.of_model)
        return _named(
            name, self.prometheus.query(f"{function}({asked}[{_duration(self.seconds)}])")
        )

    def growth(self) -> list[Sample]:
        """How much all counters and histograms grew, over all servers."""
        found: list[Sample] = []
        for known in names.HISTOGRAMS.values():
            for base in known:
                buckets = self._grown(f"{base}_bucket", "le")
                if buckets:
                    found += [*buckets, *self._grown(f"{base}_sum")]
                    break
        for known in names.COUNTERS.values():
            for name in known:
                grown = self._grown(name, "finished_reason")
                if grown:
                    found += grown
                    break
        return found

    def engines(self, infos: tuple[Sample, ...]) -> tuple[ObservedEngine, ...]:
        """The gauges of each engine."""
        found: dict[str, dict[str, Gauge]] = {}
        for gauge, known in names.GAUGES.items():
            for name in known:
                means = self._by_engine("avg_over_time", name)
                if not means:
                    continue
                largest = self._by_engine("max_over_time", name)
                samples = self._by_engine("count_over_time", name)
                for engine, mean in means.items():
                    found.setdefault(engine, {})[gauge] = Gauge(
                        mean=mean,
                        largest=max(mean, largest.get(engine, mean)),
                        samples=round(samples.get(engine, 1)),
                    )
                break
        return tuple(
            ObservedEngine(name=engine, kv_cache_tokens=cache_tokens(infos, engine), **gauges)
            for engine, gauges in sorted(found.items())
        )

    def in_system(self) -> Gauge:
        """Requests that ran or waited, over all engines."""
        present = " + ".join(
            f"sum({self.prometheus.selector(name, self.of_model)})"
            for name in (names.RUNNING, names.WAITING)
        )
        step = _duration(self.seconds / _POINTS)
        over = f"(({present})[{_duration(self.seconds)}:{step}])"
        values = [
            _one(self.prometheus.query(f"{function}_over_time{over}"))
            for function in (
                "avg",
                "max",
                "count",
            )
        ]
        mean, largest, samples = (value or 0.0 for value in values)
        if not samples:
            return NOTHING
        return Gauge(mean=mean, largest=max(mean, largest), samples=round(samples))

    def covered(self) -> float:
        """Seconds of the window that there is anything of."""
        asked = self.prometheus.selector(names.RUNNING, self.of_model)
        step = _duration(self.seconds / _POINTS)
        first = f"min(min_over_time(timestamp({asked})[{_duration(self.seconds)}:{step}]))"
        age = _one(self.prometheus.query(f"time() - {first}"))
        return min(self.seconds, age) if age and age > 0 else self.seconds

    def last(self, name: str) -> tuple[Sample, ...]:
        """The last value of a metric, of whatever model."""
        asked = self.prometheus.selector(name)
        return _named(
            name, self.prometheus.query(f"last_over_time({asked}[{_duration(self.seconds)}])")
        )

    def now(self, name: str) -> tuple[Sample, ...]:
        """A metric at this moment: servers that are gone are not among it."""
        return _named(name, self.prometheus.query(self.prometheus.selector(name, self.of_model)))

    def largest(self, name: str) -> tuple[Sample, ...]:
        """The largest value of a gauge."""
        return self.over("max_over_time", name)

    def _by_engine(self, function: str, name: str) -> dict[str, float]:
        where = self.prometheus.url
        return {
            engine_name(sample.labels): amount(sample, where=where, fix=_FIX)
            for sample in self.over(function, name)
        }

    def _grown(self, name: str, *by: str) -> list[Sample]:
        asked = self.prometheus.selector(name, self.of_model)
        kept = f" by ({','.join(by)})" if by else ""
        over = f"sum{kept} (increase({asked}[{_duration(self.seconds)}]))"
        return list(_named(name, self.prometheus.query(over)))


def _model(prometheus: Prometheus, wanted: str | None, seconds: float) -> str:
    asked = prometheus.selector(names.RUNNING)
    over = f"count by (model_name) (last_over_time({asked}[{_duration(seconds)}]))"
    known = sorted({s.labels.get("model_name", "") for s in prometheus.query(over)})
    if not known:
        chosen = f" of {prometheus.match}" if prometheus.match else ""
        raise UnknownFactError(
            f"Prometheus has no metrics of vLLM{chosen} in the last {seconds:g} s",
            where=prometheus.url,
            fix="check that it reads /metrics of the servers, and --match",
        )
    if wanted is not None and wanted not in known:
        raise InputError(
            f"no server serves {wanted!r}",
            where="--served-model",
            fix=f"choose from {', '.join(known)[:300]}",
        )
    if wanted is None and len(known) > 1:
        raise InputError(
            f"there are servers of {len(known)} models: {', '.join(known)[:300]}",
            where=prometheus.url,
            fix=f"choose one: --served-model {known[0]}",
        )
    return wanted or known[0]


def _named(name: str, samples: Iterable[Sample]) -> tuple[Sample, ...]:
    return tuple(Sample(name=name, labels=s.labels, value=s.value) for s in samples)


def _one(samples: tuple[Sample, ...]) -> float | None:
    return samples[0].value if samples and math.isfinite(samples[0].value) else None


def _duration(seconds: float) -> str:
    """As Prometheus writes it, never 0."""
    return f"{max(1, math.ceil(seconds))}s"
