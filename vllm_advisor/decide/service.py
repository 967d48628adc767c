"""What a candidate does under its load: requests at once, times against the targets, chunks.

Targets are for the 95th percentile. Requests that arrive at a rate are counted a fifth more than
stated: the speed of an engine is known to about a quarter, and traffic has peaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vllm_advisor.decide.candidate import Setting
from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.scheduling import Chunk
from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.class_load import TAIL, ClassLoad, at_peak, class_load
from vllm_advisor.sizing.mixed_load import MixedLoad, mixed_load
from vllm_advisor.sizing.performance import refuse
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.steady_state import Station, sequences_held
from vllm_advisor.sizing.step_work import StepWork, step_work
from vllm_advisor.types.workload import TokenDistribution
from vllm_advisor.units import format_tokens

_USUAL = 2048
_MOST_STEPS = 16  # of the smallest chunks, for the longest prompt
HEADROOM = 1.2  # of a stated rate
_CHUNKS = (8192, 4096, 2048, 1024, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The engines of one candidate, as far as their speed is modelled."""

    setting: Setting
    settings: InstanceSettings
    work: StepWork
    layout: CacheLayout

    def station(self, blocks: float, prompt: float, output: float, cached: float) -> Station:
        """One engine with a mean request."""
        latency = self.setting.latency
        assert latency is not None  # noqa: S101 - speed_of looked
        return Station(
            work=self.work,
            constants=latency.constants,
            prompt=prompt,
            output=output,
            cached=min(cached, prompt - 1),
            # max_num_seqs follows from the requests at once; half of a step is left for prompts.
            max_num_seqs=self.settings.max_num_batched_tokens // 2,
            held=math.inf
            if math.isinf(blocks)
            else sequences_held(self.layout, int(blocks), prompt, output),
            max_num_batched_tokens=self.settings.max_num_batched_tokens,
            stages=self.settings.pipeline_parallel_size,
        )

    def load(
        self,
        demands: tuple[Demand, ...],
        engines: int,
        *,
        blocks: float = math.inf,
        headroom: float = 1.0,
        protected: bool = False,
    ) -> MixedLoad:
        """The steady state; ``blocks`` of the KV cache, without limit unless given."""
        classes = [_class(d, self.settings, headroom) for d in demands]

        def station_of(prompt: float, output: float, cached: float) -> Station:
            return self.station(blocks, prompt, output, cached)

        return mixed_load(station_of, classes, engines=engines, protected=protected)


def speed_of(
    setting: Setting, settings: InstanceSettings, layout: CacheLayout, *, at_best: bool = False
) -> Speed | None:
    """The speed of a candidate, or ``None`` where it is not modelled.

    ``at_best``: as if the exchanges of context parallelism, which are not modelled, took no time.
    """
    if setting.latency is None or setting.pooling:
        return None
    asked = replace(settings, decode_context_parallel_size=1) if at_best else settings
    try:
        refuse(setting.model, asked)
        work = step_work(setting.model, settings, setting.node.accelerator, layout)
    except NotModelledError:
        return None
    return Speed(setting=setting, settings=settings, work=work, layout=layout)


def with_requests_at_once(demands: tuple[Demand, ...], load: MixedLoad) -> tuple[Demand, ...]:
    """Demands whose requests at once follow from the rate and the engines' own speed."""
    found = []
    for demand, times in zip(demands, load.classes, strict=True):
        if demand.request.requests_per_second is None or demand.share != 1.0:
            found.append(demand)
            continue
        stay = times.running / times.rate if times.rate else 0.0
        found.append(
            replace(
                demand,
                concurrency=at_peak(times.running),
                concurrency_formula=f"{demand.request.requests_per_second:g} requests/s x "
                f"{stay:.1f} s in the system = {times.running:.1f}, and two standard deviations",
            )
        )
    return tuple(found)


def chunk_within(
    demands: tuple[Demand, ...], load: MixedLoad, most: Chunk, max_model_len: int
) -> tuple[Chunk, str]:
    """The largest chunk whose steps keep the time between tokens that is asked for.

    Below 2,048 only chunks are tried that read the longest prompt in 16 steps.

    Returns:
        The chunk, and why no chunk does it, or nothing.
    """
    targets = [d for d in demands if d.request.slo.itl_ms is not None and d.share == 1.0]
    if not targets:
        return most, ""
    strict = min(targets, key=lambda d: d.request.slo.itl_ms or 0.0)
    target = (strict.request.slo.itl_ms or 0.0) / 1000
    name = strict.request.name
    tried: list[tuple[int, float]] = []
    smaller = [
        c for c in _CHUNKS if c < most.tokens and (c >= _USUAL or max_model_len <= c * _MOST_STEPS)
    ]
    for tokens in (most.tokens, *smaller):
        share, seconds = _full_step(load, demands, tokens)
        if share <= TAIL and not tried:
            return most, ""  # one step in twenty may take longer
        if share <= TAIL or seconds <= target:
            reason = (
                f"class {name} asks for {target * 1000:g} ms between tokens: a step with "
                f"{format_tokens(tokens)} prompt tokens is estimated to take {seconds * 1000:.0f} "
                "ms"
            )
            if tried:
                larger, longer = tried[-1]
                reason += f", one with {format_tokens(larger)} {longer * 1000:.0f} ms"
            return Chunk(tokens=tokens, reason=reason), ""
        tried.append((tokens, seconds))
    least, seconds = tried[-1]
    why = (
        f"class {name} asks for {target * 1000:g} ms between tokens, and a step with "
        f"{format_tokens(least)} prompt tokens takes {seconds * 1000:.0f} ms"
    )
    return Chunk(tokens=least, reason=most.reason), why


def missed_targets(demands: tuple[Demand, ...], load: MixedLoad) -> str:
    """The first target that is missed, or nothing."""
    if load.saturated:
        return (
            f"more requests arrive than are served: {load.requests_per_second:.2f}/s with "
            f"{HEADROOM - 1:.0%} headroom ({load.regime.value})"
        )
    for demand, times in zip(demands, load.classes, strict=True):
        if demand.share != 1.0:
            continue  # what falls back is answered later than what does not
        slo, name = demand.request.slo, demand.request.name
        pairs = (
            ("to the first token", slo.ttft_ms, times.ttft_p95),
            ("between tokens", slo.itl_ms, load.itl_p95),
            ("to the last token", slo.e2e_ms, times.e2e_p95),
        )
        for what, target, seconds in pairs:
            if target is not None and seconds * 1000 > target:
                return (
                    f"class {name} asks for {target:g} ms {what}, "
                    f"{seconds * 1000:.0f} ms are estimated"
                )
    return ""


def missed_at_best(demands: tuple[Demand, ...], load: MixedLoad) -> str:
    """What context parallelism misses if its exchanges take no time, or nothing."""
    missed = missed_targets(demands, load)
    return f"even if the exchanges of context parallelism took no time, {missed}" if missed else ""


def _full_step(load: MixedLoad, demands: tuple[Demand, ...], tokens: int) -> tuple[float, float]:
    """Share of the steps that carry prompts in chunks of this size, and seconds of one."""
    station = replace(load.station, max_num_batched_tokens=tokens)
    running = min(load.running, tokens / 2)
    longest = max(d.prompt_tokens - d.shared_prefix_tokens for d in demands)
    own = station.with_prompt(longest + station.cached, station.cached)
    return station.prompt_share(running), own.full_step(running)


def prompts_of(demand: Demand) -> TokenDistribution:
    """Prompts as they reach vLLM: retrieval makes them anew, a bounded history cuts them."""
    request = demand.request
    lengths = request.prompt_tokens
    if not demand.retrieved_tokens and demand.prompt_tokens >= lengths.p95:
        return lengths
    most = demand.max_tokens - request.output_tokens.max
    return TokenDistribution(
        p50=min(lengths.p50, demand.prompt_tokens),
        p95=demand.prompt_tokens,
        max=max(most, demand.prompt_tokens),
    )


def _class(demand: Demand, settings: InstanceSettings, headroom: float) -> ClassLoad:
    request = demand.request
    rate = request.requests_per_second
    asked = replace(
        request, requests_per_second=None if rate is None else rate * headroom * demand.share
    )
    at_once = None if rate is not None else float(demand.concurrency)
    return class_load(
        asked, prompt=prompts_of(demand), prefix_caching=settings.prefix_caching, at_once=at_once
    )
