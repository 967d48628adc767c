"""A chosen instance's load, replayed request by request: do its targets hold?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.service import prompts_of
from vllm_advisor.sizing.arrivals import poisson
from vllm_advisor.sizing.mixed_load import ClassTimes
from vllm_advisor.sizing.replay import replay
from vllm_advisor.types.replay import Replayed, ReplayRequest
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source, SourceKind

_REQUESTS = 3000
_FEWEST = 60  # of a class, for a 95th percentile
_MOST = 20_000  # of all classes, where one is rare
_P95 = 0.95
MORE_LOAD = 1.5  # times the stated load: what holds that too may be larger than it need be
_SOURCE = Source(SourceKind.FORMULA, "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a replay of one instance found: figures, and the targets that it missed.

    ``missed_at_more`` are those of :data:`MORE_LOAD` times the load, where those of the load hold.
    """

    figures: tuple[Figure, ...]
    missed: tuple[str, ...]
    missed_at_more: tuple[str, ...] = ()
    why_not: str = ""


def verified(name: str, chosen: Candidate, *, protected: bool) -> Verified:
    """Replay the stated load on the replicas of a candidate.

    Classes that keep a number of requests in the system arrive at random at the rate that number
    makes. ``protected`` instances give short requests a part of each step, which the replay does
    not know: they are not replayed.
    """
    load, figures = chosen.load, chosen.figures
    if load is None or figures is None:
        return Verified(figures=(), missed=(), why_not="its speed is not modelled")
    if protected:
        why = "the replay does not know --long-prefill-token-threshold"
        return Verified(figures=(), missed=(), why_not=why)
    requests, owners = _requests(chosen.demands, load.classes)
    longest = max(one.prompt + one.output for one in requests)

    def judged(speedup: float) -> Verified:
        seen = replay(
            load.station,
            [one._replace(arrival=one.arrival / speedup) for one in requests],
            engines=chosen.replicas * chosen.settings.data_parallel_size,
            kv_tokens=max(figures.capacity.tokens, longest),
            warm_up=len(requests) // 10,
        )
        return _judged(name, chosen, seen, owners)

    found = judged(1.0)
    return found if found.missed else replace(found, missed_at_more=judged(MORE_LOAD).missed)


def _requests(
    demands: tuple[Demand, ...], classes: tuple[ClassTimes, ...]
) -> tuple[list[ReplayRequest], list[int]]:
    """Requests of all classes in the order of their arrival, and whose each is."""
    total = sum(times.rate for times in classes)
    rarest = min(times.rate for times in classes if times.rate)
    count = min(_MOST, max(_REQUESTS, math.ceil(_FEWEST * total / rarest)))
    made: list[tuple[ReplayRequest, int]] = []
    for index, (demand, times) in enumerate(zip(demands, classes, strict=True)):
        number = max(1, round(count * times.rate / total))
        prompts = prompts_of(demand)
        again = 1 - 1 / max(1.0, demand.request.requests_per_document)
        drawn = poisson(times.rate, prompts, demand.request.output_tokens, number, seed=index)
        for one in drawn:
            shared = min(demand.shared_prefix_tokens, one.prompt - 1)
            cached = int(shared + (one.prompt - shared) * again)
            made.append((one._replace(cached=min(cached, one.prompt - 1)), index))
    made.sort(key=lambda pair: pair[0].arrival)
    return [one for one, _ in made], [index for _, index in made]


def _judged(name: str, chosen: Candidate, seen: Replayed, owners: list[int]) -> Verified:
    figures, missed = [], []
    if seen.unstable:
        missed.append(f"{name}: requests arrive faster than they are served")
    itl = seen.itl.p95 * 1000 if seen.itl else 0.0
    start = len(owners) // 10
    for index, demand in enumerate(chosen.demands):
        own = [
            one
            for number, (one, owner) in enumerate(zip(seen.requests, owners, strict=True))
            if owner == index and number >= start
        ]
        if not own:
            continue
        request, slo = demand.request.name, demand.request.slo
        first = _percentile([one.ttft for one in own]) * 1000
        last = _percentile([one.e2e for one in own]) * 1000
        figures.append(
            Figure(
                id=f"{name}.simulated.ttft.{request}",
                value=round(first),
                unit="ms",
                formula=f"95th percentile of {len(own)} replayed requests",
                source=_SOURCE,
            )
        )
        if demand.share != 1.0:
            continue
        for what, target, value in (
            ("to the first token", slo.ttft_ms, first),
            ("between tokens", slo.itl_ms, itl),
            ("to the last token", slo.e2e_ms, last),
        ):
            if target is not None and value > target:
                missed.append(
                    f"class {request} on {name} asks for {target:g} ms {what}, "
                    f"{value:.0f} ms were replayed"
                )
    figures.append(
        Figure(
            id=f"{name}.simulated.itl",
            value=round(itl, 1),
            unit="ms",
            formula="95th percentile of the times between two tokens of all replayed requests",
            source=_SOURCE,
        )
    )
    return Verified(figures=tuple(figures), missed=tuple(missed))


def _percentile(values: list[float]) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, math.ceil(_P95 * len(ranked)) - 1)]
