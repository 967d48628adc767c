"""An instance under a steady load: requests that run and wait, and the time between tokens.

Chunked prefill mixes prompts into the steps of running requests. Each request that ends makes room
for one that has to be read first, so of every step ``running x prompt / output`` tokens are prompt,
and what they cost is spread over the tokens of all:

    q    = (step(running, chunk) - step(running)) / chunk        seconds of one prompt token
    TPOT = step(running) + (running - 1) x prompt / output x q x prefill_overlap

Methods: closed loop by Little's law over the time of one request; open loop by the fixed point of
arrivals and that time. ``prompt`` counts what prefix caching does not find.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.fixed_point import fixed_point
from vllm_advisor.sizing.step_time import StepParts, step_parts
from vllm_advisor.sizing.step_work import StepWork
from vllm_advisor.types.latency import LatencyConstants, Regime

SATURATED = 0.98  # of the time goes into prompts: more arrive than are read


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One data-parallel engine, and what its requests are like.

    ``prompt`` and ``output`` are mean tokens of a request, ``cached`` those of the prompt that
    prefix caching finds. ``places`` is how many requests run at once at most: of ``max_num_seqs``,
    ``held`` of what the KV cache holds. The ``stages`` of a pipeline work on as many batches at
    once, each with its share of the running requests. ``others`` are tokens of each running request
    where that is not the mean of ``prompt`` and ``output``.
    """

    work: StepWork
    constants: LatencyConstants
    prompt: float
    output: float
    cached: float = 0.0
    max_num_seqs: int
    held: float
    max_num_batched_tokens: int
    stages: int = 1
    others: float | None = None

    @property
    def places(self) -> float:
        """Requests that run at once, at most."""
        return max(1.0, min(float(self.max_num_seqs), self.held))

    @property
    def context(self) -> float:
        """Tokens of a running request, on average over its output."""
        return self.prompt + self.output / 2 if self.others is None else self.others

    def step(self, running: float, prompt_tokens: float = 0.0, *, engines: int = 1) -> StepParts:
        """A step with this many running requests and prompt tokens, in so many engines.

        A request that is alone is in one stage at a time, and passes all of them.
        """
        return step_parts(
            self.work,
            self.constants,
            sequences=max(running / self.stages, min(running, 1.0)),
            context=self.context,
            prompt_tokens=prompt_tokens,
            prompt_context=self.cached + (self.prompt - self.cached) / 2,
            prompt_engines=engines,
        )

    def with_prompt(self, prompt: float, cached: float) -> Station:
        """The same engine for a request with another prompt, beside the same others."""
        return replace(self, prompt=prompt, cached=cached, others=self.context)

    def prompt_token_seconds(
        self, running: float, step: float | None = None, *, engines: int = 1
    ) -> float:
        """Seconds that one prompt token adds to the steps of this many requests.

        ``step`` are those of a step without prompts, where they are known.
        """
        new = self.prompt - self.cached
        chunk = max(1.0, min(new, self.max_num_batched_tokens - running))
        more = self.step(running, chunk, engines=engines).seconds
        alone = self.step(running).seconds if step is None else step
        return (more - alone) / chunk

    def prefill_seconds(self, running: float, step: float | None = None) -> float:
        """Seconds until a prompt is read beside this many running requests."""
        new = self.prompt - self.cached
        alone = self.step(running).seconds if step is None else step
        steps = max(1.0, new / max(1.0, self.max_num_batched_tokens - running))
        return steps * alone + new * self.prompt_token_seconds(running, alone)

    @property
    def least_prefill_seconds(self) -> float:
        """Seconds of one prompt in steps that carry nothing but prompts, as many as fit."""
        full = float(self.max_num_batched_tokens)
        whole = self.step(0.0, full, engines=self.work.engines).seconds
        return (self.prompt - self.cached) * whole / full

    def tpot(self, running: float) -> float:
        """Seconds between two tokens of a request, with the prompts of the others."""
        others = max(0.0, running / self.stages - 1) * (self.prompt - self.cached) / self.output
        own = self.step(running).seconds
        prompts = others * self.prompt_token_seconds(running, own, engines=self.work.engines)
        return own + prompts * self.constants.prefill_overlap

    def random_tpot(self, running: float) -> float:
        """:meth:`tpot` where requests arrive at random, ``running`` of them on average.

        A request sees that average of others beside itself, and all of their prompts: equal
        requests of a closed loop keep out of each other's way, those that arrive at random do not.
        """
        others = running / self.stages * (self.prompt - self.cached) / self.output
        own = self.step(running + 1).seconds
        more = self.prompt_token_seconds(running + 1, own, engines=self.work.engines)
        return own + others * more

    def line_seconds(self, running: float) -> float:
        """Seconds that the prompts behind one prompt of new tokens wait for it.

        Steps take what fits of the prompts that are there, and the tokens of running requests.
        """
        budget = max(1.0, self.max_num_batched_tokens - running)
        full = self.step(running, budget).seconds
        return (self.prompt - self.cached) / budget * full / self.stages

    def prompt_share(self, running: float) -> float:
        """Of the steps, those that carry a chunk of a prompt, 0 to 1."""
        new = self.prompt - self.cached
        chunk = max(1.0, min(new, self.max_num_batched_tokens - running))
        return min(1.0, running / self.stages * new / self.output / chunk)

    def full_step(self, running: float) -> float:
        """Seconds of a step that carries as much of a prompt as fits."""
        chunk = max(1.0, min(self.prompt - self.cached, self.max_num_batched_tokens - running))
        return self.step(running, chunk).seconds

    @property
    def before_first_step(self) -> float:
        """Seconds from the arrival of a request until the scheduler sees it.

        The API server makes tokens of all of its text, whatever the cache holds of it.
        """
        return self.constants.request + self.prompt * self.constants.prompt_token

    @property
    def floor(self) -> float:
        """Seconds to the first token of a request that is alone."""
        return self.before_first_step + self.prefill_seconds(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The steady state of one engine; times in seconds, ``tokens_per_second`` of output.

    ``queue`` is the mean wait for prompts of others, which a share ``busy`` of the requests meets.
    """

    running: float
    waiting: float
    tpot: float
    ttft: float
    ttft_steady: float
    ttft_floor: float
    tokens_per_second: float
    requests_per_second: float
    regime: Regime
    busy: float = 0.0
    queue: float = 0.0
    saturated: bool = False

    def ttft_at(self, percentile: float) -> float:
        """Seconds until this share of the requests has its first token, without a start together.

        Of the requests a share ``busy`` waits for prompts before its own; the wait of those is
        taken to fall off exponentially around its mean, ``queue / busy``.
        """
        least = self.ttft_steady - self.queue
        beyond = 1 - percentile
        if self.busy <= beyond:
            return least
        return least + self.queue / self.busy * math.log(self.busy / beyond)

    @property
    def stay(self) -> float:
        """Mean seconds from arrival to the last token, by the output of the station."""
        return self.running / self.requests_per_second if self.requests_per_second else 0.0


def sequences_held(layout: CacheLayout, blocks: int, prompt: float, output: float) -> float:
    """Requests that the KV cache holds at once, each with half of its output on average."""
    each = layout.request_blocks(max(1, round(prompt + output / 2))) if layout.groups else 0
    return max(0, blocks - 1) / each if each else math.inf


def closed_loop(station: Station, concurrency: float) -> Served:
    """``concurrency`` requests in the system at all times, each followed by the next at once.

    Those beyond the places wait until one is free. ``ttft`` is the mean over such a run, in which a
    share of the requests (``start_wave``) starts together and waits for half of the others'
    prompts; ``ttft_steady`` leaves that start out.
    """
    running = max(1.0, min(concurrency, station.places))
    tpot = station.tpot(running)
    queue, busy = _queue(station, running, tpot)
    each = station.prompt_token_seconds(running) * (station.prompt - station.cached)
    alone = station.before_first_step + station.prefill_seconds(running)
    alone += station.step(running).seconds
    rest = (station.output - 1) * tpot
    # Short answers leave no time for the prompts of others to be seen in: no request comes round
    # before the prompts of all are read, at best in full steps.
    turn = station.constants.prefill_overlap * running * station.least_prefill_seconds
    turn /= station.stages
    if turn > alone + queue + rest:
        queue, busy = turn - alone - rest, 1.0
    first = alone + queue
    cycle = first + rest
    waiting = max(0.0, concurrency - running)
    wave = station.constants.start_wave * (running - 1) / 2 * each
    ttft = first + waiting / running * cycle
    rate = running / cycle
    return Served(
        running=running,
        waiting=waiting,
        tpot=tpot,
        ttft=ttft + wave,
        ttft_steady=ttft,
        ttft_floor=station.floor,
        tokens_per_second=rate * station.output,
        requests_per_second=rate,
        regime=regime_of(station, running, waiting > 0),
        busy=busy,
        queue=queue,
    )


def open_loop(station: Station, requests_per_second: float) -> Served:
    """Requests arrive at a rate, at random times.

    running = rate x (TTFT(running) + output x TPOT(running)) is solved. Where no
    number of places solves it the engine is saturated, and requests wait without end.
    """

    def needed(running: float) -> float:
        first, _, _ = _first(station, running, requests_per_second)
        return requests_per_second * (first + station.output * station.random_tpot(running))

    found = fixed_point(needed, station.places)
    saturated = found is None
    running = station.places if found is None else found
    tpot = station.random_tpot(running)
    ttft, queue, busy = _first(station, running, requests_per_second)
    rate = running / (ttft + station.output * tpot) if saturated else requests_per_second
    return Served(
        running=running,
        waiting=0.0,
        tpot=tpot,
        ttft=ttft,
        ttft_steady=ttft,
        ttft_floor=station.floor,
        tokens_per_second=rate * station.output,
        requests_per_second=rate,
        regime=regime_of(station, max(1.0, running), saturated),
        busy=busy,
        queue=queue,
        saturated=saturated,
    )


def regime_of(station: Station, running: float, waiting: bool) -> Regime:
    """What binds: places where requests wait, else the largest part of the time of a token."""
    if waiting:
        limited = station.held < station.max_num_seqs
        return Regime.KV_LIMITED if limited else Regime.SEQ_LIMITED
    parts, tpot = station.step(running), station.tpot(running)
    if tpot - parts.seconds > parts.seconds:
        return Regime.PREFILL_BOUND
    fixed = parts.exchange + parts.overhead
    if fixed > parts.seconds - fixed:
        return Regime.OVERHEAD_BOUND
    return Regime.COMPUTE_BOUND if parts.compute > parts.memory else Regime.BANDWIDTH_BOUND


def _queue(station: Station, running: float, tpot: float) -> tuple[float, float]:
    """Mean wait of a closed loop's prompts for those before them, and how often one has to.

    M/D/1 over the prompts of the other requests.
    """
    each = station.prompt_token_seconds(running) * (station.prompt - station.cached)
    busy = min((running - 1) * each / (running * each + station.output * tpot), SATURATED)
    return each * busy / (2 * (1 - busy)), busy


def _first(station: Station, running: float, rate: float) -> tuple[float, float, float]:
    """Time to the first token with requests arriving at random, its queue and how busy it is."""
    each = station.line_seconds(running)
    busy = min(rate * each, SATURATED)
    queue = each * busy / (2 * (1 - busy))
    alone = station.before_first_step + station.prefill_seconds(running)
    return alone + station.step(running).seconds / 2 + queue, queue, busy
