"""Several classes of requests on one kind of engine: how many run, and what each class waits for.

Classes share steps, so all have the same time between tokens; what differs is the prompt of their
own and what they wait for before it. A class arrives at a rate, or keeps a number of requests in
the system. Prompts of others are a queue in front of the engine (M/G/1):

    busy  = sum over classes of rate x seconds in which a prompt fills the steps
    queue = sum over classes of rate x E[seconds^2] / (2 (1 - busy))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vllm_advisor.sizing.class_load import TAIL, ClassLoad
from vllm_advisor.sizing.fixed_point import fixed_point
from vllm_advisor.sizing.steady_state import SATURATED, Station, regime_of
from vllm_advisor.types.latency import Regime

_ROUNDS = 4  # of shares between the classes, which settle fast

StationOf = Callable[[float, float, float], Station]  # of mean prompt, output and cached tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTimes:
    """What one class sees, in seconds; ``running`` and ``rate`` over all engines."""

    name: str
    rate: float
    running: float
    output: float  # mean tokens
    ttft: float
    ttft_p95: float
    e2e_p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLoad:
    """The steady state of engines that share several classes.

    ``running`` is of one engine. ``itl_p95`` is the time between two tokens that one in twenty
    exceeds: a step with a prompt in it, where more than one step in twenty has one.
    """

    station: Station
    running: float
    tpot: float
    itl_p95: float
    busy: float
    classes: tuple[ClassTimes, ...]
    regime: Regime
    saturated: bool

    @property
    def requests_per_second(self) -> float:
        """Of all classes and engines."""
        return sum(c.rate for c in self.classes)


def mixed_load(
    station_of: StationOf,
    classes: Sequence[ClassLoad],
    *,
    engines: int,
    protected: bool = False,
) -> MixedLoad:
    """Solve the steady state.

    Args:
        station_of: one engine with a mean request.
        classes: what reaches all engines together.
        engines: equal ones.
        protected: a long prompt leaves room in each step for others (long-prefill threshold), so
            that prompts no longer than the mean do not wait for longer ones.
    """
    stays = [c.output * 0.02 + 0.5 for c in classes]
    # Rates that are all stated do not follow from how long requests stay.
    follows = any(c.rate is None for c in classes)
    for _ in range(_ROUNDS if follows else 1):
        rates = [_rate(c, s) / engines for c, s in zip(classes, stays, strict=True)]
        station = _mixed(station_of, classes, rates)
        running, saturated = _running(station, classes, rates, engines)
        tpot = station.random_tpot(_others(classes, running))
        waits = [_queue(station, classes, rates, c, running, protected=protected) for c in classes]
        firsts = [
            _first(station, running, c.prompt, c.cached * c.prompt) + queue
            for c, (queue, _) in zip(classes, waits, strict=True)
        ]
        stays = [f + c.output * tpot for c, f in zip(classes, firsts, strict=True)]
    times = []
    for load, rate, first, (queue, busy) in zip(classes, rates, firsts, waits, strict=True):
        late = first - queue + _tail(queue, busy)
        long = _first(station, running, load.prompt_p95, load.cached_p95) + queue
        worst = max(late, long)
        times.append(
            ClassTimes(
                name=load.name,
                rate=rate * engines,
                output=load.output,
                running=rate * engines * (first + load.output * tpot),
                ttft=first,
                ttft_p95=worst,
                e2e_p95=worst + (load.output_p95 - 1) * tpot,
            )
        )
    return MixedLoad(
        station=station,
        running=running,
        tpot=tpot,
        itl_p95=_between(station, classes, running),
        busy=min(1.0, _load(station, classes, rates, running)),
        classes=tuple(times),
        regime=regime_of(station, max(1.0, running), saturated),
        saturated=saturated,
    )


def _rate(load: ClassLoad, stay: float) -> float:
    return load.rate if load.rate is not None else (load.at_once or 0.0) / stay


def _mixed(station_of: StationOf, classes: Sequence[ClassLoad], rates: Sequence[float]) -> Station:
    """An engine whose mean request is the classes' by their rates."""
    total = sum(rates) or 1.0
    shares = [rate / total for rate in rates]

    def mean(values: Sequence[float]) -> float:
        return sum(share * value for share, value in zip(shares, values, strict=True))

    return station_of(
        mean([c.prompt for c in classes]),
        mean([c.output for c in classes]),
        mean([c.cached * c.prompt for c in classes]),
    )


def _running(
    station: Station, classes: Sequence[ClassLoad], rates: Sequence[float], engines: int
) -> tuple[float, bool]:
    """Requests that run on one engine, and whether more arrive than are served."""
    kept = sum(c.at_once or 0.0 for c in classes if c.rate is None) / engines
    arriving = [(c, r) for c, r in zip(classes, rates, strict=True) if c.rate is not None]

    own = [
        (rate, _of_class(station, c.prompt, c.cached * c.prompt), c.output) for c, rate in arriving
    ]

    def needed(running: float) -> float:
        step, tpot = station.step(running).seconds, station.random_tpot(running)
        inside = sum(
            rate * (_first_of(each, running, step) + output * tpot) for rate, each, output in own
        )
        return kept + inside

    most = station.places
    if not arriving:
        return min(most, max(1.0, kept)), kept > most
    high = fixed_point(needed, most)
    if high is None or _load(station, classes, rates, high) >= SATURATED:
        return most, True
    return high, False


def _others(classes: Sequence[ClassLoad], running: float) -> float:
    """Requests that one of them sees beside itself."""
    arriving = any(c.rate is not None for c in classes)
    return running if arriving else max(0.0, running - 1)


def _load(
    station: Station, classes: Sequence[ClassLoad], rates: Sequence[float], running: float
) -> float:
    return sum(r * _in_line(station, c, running) for c, r in zip(classes, rates, strict=True))


def _in_line(station: Station, load: ClassLoad, running: float) -> float:
    """Seconds that prompts wait for one of this class before them."""
    new = load.prompt * (1 - load.cached)
    mean = max(1.0, station.prompt - station.cached)
    return station.line_seconds(running) * new / mean


def _queue(
    station: Station,
    classes: Sequence[ClassLoad],
    rates: Sequence[float],
    own: ClassLoad,
    running: float,
    *,
    protected: bool,
) -> tuple[float, float]:
    """Mean wait of a class for prompts before its own, and how often it has to wait."""
    busy = squares = 0.0
    for load, rate in zip(classes, rates, strict=True):
        if protected and load.prompt > max(own.prompt, station.prompt):
            continue
        seconds = _in_line(station, load, running)
        busy += rate * seconds
        squares += rate * seconds * seconds * (1 + load.spread)
    busy = min(busy, SATURATED)
    return squares / (2 * (1 - busy)), busy


def _of_class(station: Station, prompt: float, cached: float) -> Station:
    return station.with_prompt(prompt, min(cached, prompt - 1))


def _first_of(own: Station, running: float, step: float) -> float:
    """Seconds to the first token without a queue; ``step`` are those of a step without prompts."""
    return own.before_first_step + own.prefill_seconds(running, step) + step / 2


def _first(station: Station, running: float, prompt: float, cached: float) -> float:
    """Seconds to the first token of such a prompt without a queue."""
    own = _of_class(station, prompt, cached)
    return _first_of(own, running, own.step(running).seconds)


def _tail(queue: float, busy: float) -> float:
    """The wait that one in twenty exceeds."""
    return queue / busy * math.log(busy / TAIL) if busy > TAIL else 0.0


def _between(station: Station, classes: Sequence[ClassLoad], running: float) -> float:
    """Time between two tokens at the 95th percentile."""
    if station.prompt_share(running) <= TAIL:
        return station.step(running).seconds
    longest = max(c.prompt_p95 - c.cached_p95 for c in classes)
    return station.with_prompt(longest + station.cached, station.cached).full_step(running)
