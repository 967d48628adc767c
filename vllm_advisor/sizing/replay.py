"""Requests replayed through vLLM's scheduler, each step as long as the steady state takes it.

The steady state speaks of means; a replay has every request, so it also has the tails: what the
slowest in twenty wait, and what bursts do. Engines and the batches of a pipeline are independent of
each other here and get their requests in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.sizing.replay_engine import Engine
from vllm_advisor.sizing.replay_sequence import Elsewhere
from vllm_advisor.sizing.replay_tally import Histogram, steady_rate
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.sizing.step_function import step_function
from vllm_advisor.types.replay import Distribution, Level, Replayed, ReplayRequest, RequestTimes


def replay(
    station: Station,
    requests: Iterable[ReplayRequest],
    *,
    engines: int = 1,
    concurrency: int | None = None,
    kv_tokens: int | None = None,
    longest_run: int | None = None,
    warm_up: int = 0,
) -> Replayed:
    """Serve requests, step by step.

    Args:
        station: one engine.
        requests: in any order; they are served in that of their arrival.
        engines: equal ones (replicas, or data-parallel), which get the requests in turn.
        concurrency: requests in all of them at all times (closed loop); arrivals are not read then.
        kv_tokens: tokens that the KV cache of one engine holds; what ``station.held`` requests of
            mean length take unless given.
        longest_run: steps without an event between them that are taken at once; 1 takes each alone.
        warm_up: first requests, which are served but left out of the distributions.

    Raises:
        InputError: there is no request, or one of them has no meaning.
        InfeasibleError: a request is longer than the KV cache.
    """
    given = list(requests)
    capacity = kv_capacity(station) if kv_tokens is None else kv_tokens
    capacity //= station.stages
    _check(given, capacity, engines, concurrency)
    order: Sequence[int] = range(len(given))
    if concurrency is None:
        order = sorted(order, key=lambda index: given[index].arrival)
    lanes = engines * station.stages
    users = _shares(concurrency, lanes) if concurrency is not None else [None] * lanes
    places = [order[lane :: len(users)] for lane in range(len(users))]

    seconds = step_function(station.work, station.constants)

    def run(elsewhere: Elsewhere | None) -> list[Engine]:
        made = [
            Engine(
                seconds,
                [given[index] for index in lane],
                seats=max(1, station.max_num_seqs // station.stages),
                budget=station.max_num_batched_tokens,
                kv_tokens=capacity,
                delay=station.before_first_step,
                users=at_once,
                longest_run=longest_run or _ANY,
                warm_up=-(-warm_up // len(users)),
                elsewhere=elsewhere,
            )
            for lane, at_once in zip(places, users, strict=True)
        ]
        for engine in made:
            engine.run()
        return made

    served = run(None)
    if station.work.engines > 1 and station.work.experts:
        # How long the prompts of the others take is known only from their replay.
        elsewhere = _elsewhere(served, station.work.engines)
        for _ in range(_ROUNDS):
            served = run(elsewhere)
            seen = _elsewhere(served, station.work.engines)
            # Halfway: a rate that is too high makes steps that are too slow, and the other way.
            elsewhere = Elsewhere((elsewhere.rate + seen.rate) / 2, seen.chunk)
    counted = order[min(warm_up, len(order) - 1) :]
    return _summed(given, served, places, capacity, counted)


_ANY = 1 << 60
_LATEST = 1e9  # seconds, within which a clock tells microseconds
_ROUNDS = 4


def _elsewhere(engines: Sequence[Engine], group: int) -> Elsewhere:
    """What the other engines of a group read while one takes its steps.

    They share experts and so wait for each other in each step.
    """
    tallies = [engine.tally for engine in engines]
    read = sum(tally.read_tokens for tally in tallies)
    mean = read / (max(engine.now for engine in engines) * len(engines))
    return Elsewhere((group - 1) * mean, read / sum(tally.prompt_steps for tally in tallies))


def kv_capacity(station: Station) -> int:
    """Tokens that the KV cache of one engine holds, of requests that are like the station's."""
    if math.isinf(station.held):
        return _ANY
    return int(station.held * station.context)


def _shares(concurrency: int, lanes: int) -> list[int]:
    """Users of each lane; a lane without any is left out."""
    each, more = divmod(concurrency, lanes)
    return [each + (lane < more) for lane in range(lanes) if each or lane < more]


def _check(
    requests: Sequence[ReplayRequest], capacity: int, engines: int, concurrency: int | None
) -> None:
    if not requests:
        raise InputError("there is no request to replay", where="requests", fix="give at least one")
    for name, value in (("engines", engines), ("concurrency", concurrency)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}", where=name, fix="at least 1")
    for index, one in enumerate(requests):
        if abs(one.arrival) > _LATEST and math.isfinite(one.arrival):
            raise InputError(
                f"request {index} arrives {one.arrival:.3g} seconds from the start",
                where="requests",
                fix=f"a load of at most {_LATEST:.0e} seconds: fewer requests, or a higher rate",
            )
        if one.prompt < 1 or one.output < 1 or one.cached < 0 or not math.isfinite(one.arrival):
            raise InputError(
                f"request {index} has no meaning: {one}",
                where="requests",
                fix="a prompt and an answer have at least one token, arrivals are seconds",
            )
        if one.prompt + one.output > capacity:
            raise InfeasibleError(
                f"a request of {one.prompt + one.output:,} tokens is longer than the KV cache of "
                f"{capacity:,} tokens",
                where="requests",
                fix="shorter requests, or more memory for the KV cache",
            )


def _summed(
    given: Sequence[ReplayRequest],
    engines: Sequence[Engine],
    places: Sequence[Sequence[int]],
    capacity: int,
    counted: Sequence[int],
) -> Replayed:
    times: list[RequestTimes | None] = [None] * len(given)
    for engine, lane in zip(engines, places, strict=True):
        for place, (arrival, first, last) in zip(lane, engine.times, strict=True):
            after = given[place].output - 1
            times[place] = RequestTimes(
                arrival, first - arrival, (last - first) / after if after else None, last - arrival
            )
    done = tuple(one for one in times if one is not None)
    tallies = [engine.tally for engine in engines]
    start = min(one.arrival for one in done)
    seconds = max(engine.now for engine in engines) - start
    itl = Histogram()
    for tally in tallies:
        itl.merge(tally.itl)
    late = [done[index] for index in counted]
    ttft, e2e = Distribution.of([r.ttft for r in late]), Distribution.of([r.e2e for r in late])
    assert ttft is not None  # noqa: S101 - there is a request
    assert e2e is not None  # noqa: S101
    output = sum(one.output for one in given)
    return Replayed(
        requests=done,
        ttft=ttft,
        tpot=Distribution.of([r.tpot for r in late if r.tpot is not None]),
        itl=itl.distribution(),
        e2e=e2e,
        kv_use=Level(
            mean=sum(t.kv_seconds for t in tallies) / (capacity * len(tallies) * seconds),
            max=max(t.kv_most for t in tallies) / capacity,
        ),
        running=Level(
            mean=sum(t.running_seconds for t in tallies) / seconds,
            max=sum(t.running_most for t in tallies),
        ),
        waiting=Level(
            mean=sum(t.waiting_seconds for t in tallies) / seconds,
            max=sum(t.waiting_most for t in tallies),
        ),
        preemptions=sum(t.preemptions for t in tallies),
        steps=sum(t.steps for t in tallies),
        prompt_tokens=sum(one.prompt for one in given),
        output_tokens=output,
        seconds=seconds,
        requests_per_second=len(given) / seconds,
        output_tokens_per_second=output / seconds,
        steady_requests_per_second=steady_rate(one.arrival + one.e2e for one in done),
        unstable=any(tally.grew(len(lane)) for tally, lane in zip(tallies, places, strict=True)),
    )
