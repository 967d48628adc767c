"""Request classes from what servers counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vllm_advisor.sizing.histograms import Quantile, Shape, shape_of, split
from vllm_advisor.types.observation import Histogram, Observed
from vllm_advisor.types.workload import SLO, Constraints, RequestClass, TokenDistribution
from vllm_advisor.units import format_tokens

SERVED, SHORT, LONG = "served", "short", "long"
_FEW = 0.01  # of the requests: not worth a class of their own, if the longer ones hold them
_SEEN = 5  # readings of a gauge, from which its mean says something
_SOME = 4.0  # requests at once, from which what they share can be told from what they hold
_MOST_REUSED = 0.99
_WORTH_SAYING = 0.005  # of the prompts' tokens
_DIGITS = 3  # of a rate
_ROUNDED = 1e-6  # of a size that is whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """A class's lengths with what bounds them: the edges of the buckets they were counted in."""

    tokens: TokenDistribution
    p50: Quantile
    p95: Quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedClass:
    """A class, how sure its lengths are, and which share of the requests it is."""

    request: RequestClass
    prompt: Percentiles
    output: Percentiles
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTraffic:
    """The classes, and what they take for true."""

    classes: tuple[ObservedClass, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reuse:
    """What the prefix cache had of a prompt: ``shared`` tokens in all, ``again`` of the rest."""

    shared: float
    again: float


def observed_traffic(
    seen: Observed,
    *,
    slo: SLO,
    short_context_tokens: int = Constraints().short_context_tokens,
) -> ObservedTraffic:
    """The classes of an observation: one, or two where some requests are short and some long.

    Args:
        seen: with at least one request.
        slo: targets of all classes.
        short_context_tokens: up to here a request is short, prompt and answer together.
    """
    counts = seen.counts
    most_prompt = _least(seen.longest_prompt, seen.max_model_len)
    most_output = _least(seen.longest_output, seen.max_model_len)
    output = _percentiles(counts.output_tokens, most_output)
    shape = shape_of(counts.prompt_tokens, most=most_prompt)
    at = short_context_tokens - output.tokens.max
    parts = _parts(counts.prompt_tokens, shape, at, least=short_context_tokens / 2)
    reuse = _reuse(seen)
    classes = []
    for name, prompts in parts:
        most = at if name == SHORT else shape.largest
        lengths = _percentiles(prompts, most, exact_sum=name == SERVED)
        prompt = _within(lengths, output.tokens, seen.max_model_len)
        share = prompts.count / counts.prompt_tokens.count
        request = RequestClass(
            name=name,
            prompt_tokens=prompt.tokens,
            output_tokens=output.tokens,
            requests_per_second=_rounded(seen.peak_requests_per_second * share),
            shared_prefix_tokens=min(math.floor(reuse.shared), prompt.tokens.p50),
            requests_per_document=round(1 / (1 - reuse.again), 2),
            slo=slo,
        )
        classes.append(ObservedClass(request=request, prompt=prompt, output=output, share=share))
    return ObservedTraffic(
        classes=tuple(classes), assumptions=_assumptions(seen, reuse, split_up=len(parts) > 1)
    )


def _parts(
    histogram: Histogram, shape: Shape, at: float, *, least: float
) -> list[tuple[str, Histogram]]:
    """The prompts, in two where it is worth it, and where the short ones are not too short."""
    if at >= least:
        low, high = split(histogram, shape, at)
        if low.count > _FEW * histogram.count and high.count > 0:
            return [(SHORT, low), (LONG, high)]
    return [(SERVED, histogram)]


def _percentiles(
    histogram: Histogram, most: float | None, *, exact_sum: bool = True
) -> Percentiles:
    shape = shape_of(histogram, most=most, exact_sum=exact_sum)
    p50, p95 = shape.quantile(0.5), shape.quantile(0.95)
    median = max(1, round(p50.point))
    high = max(median, math.ceil(p95.point))
    tokens = TokenDistribution(
        p50=median, p95=high, max=max(high, math.floor(shape.largest + _ROUNDED))
    )
    return Percentiles(tokens=tokens, p50=p50, p95=p95)


def _within(prompt: Percentiles, output: TokenDistribution, length: int | None) -> Percentiles:
    """Prompts no longer than what the longest answer leaves of the model's length.

    No request was longer than the server's ``max_model_len``; the edges of buckets may be.
    """
    if length is None or prompt.tokens.max + output.max <= length:
        return prompt
    most = max(1, length - output.max)
    tokens = prompt.tokens
    most = max(most, tokens.p50)
    return replace(
        prompt, tokens=replace(tokens, p95=min(tokens.p95, most), max=min(tokens.max, most))
    )


def _reuse(seen: Observed) -> _Reuse:
    """How much of a prompt all requests share, and how much is asked again.

    Both are hits of the prefix cache. What running requests share is held once: if R of them with
    C tokens each hold H together, they share (R C - H) / (R - 1). Where the server does not say
    how many tokens it holds, nothing is taken to be shared: that needs the most memory.
    """
    rate = seen.counts.prefix_hit_rate or 0.0
    prompt = seen.counts.prompt_tokens.mean or 0.0
    output = seen.counts.output_tokens.mean or 0.0
    if not rate or not prompt:
        return _Reuse(shared=0.0, again=0.0)
    found = []
    for engine in seen.engines:
        running, usage = engine.running, engine.kv_cache_usage
        if engine.kv_cache_tokens and running.samples >= _SEEN and running.mean >= _SOME:
            held = usage.mean * engine.kv_cache_tokens
            of_all = running.mean * (prompt + output / 2)
            found.append((of_all - held) / (running.mean - 1))
    hit = rate * prompt
    shared = min(hit, max(0.0, min(found))) if found else 0.0
    again = (hit - shared) / (prompt - shared) if prompt > shared else 0.0
    return _Reuse(shared=shared, again=min(again, _MOST_REUSED))


def _assumptions(seen: Observed, reuse: _Reuse, *, split_up: bool) -> tuple[str, ...]:
    found = [
        "percentiles are read from histograms; each lies in the bucket whose edges stand beside it"
    ]
    if split_up:
        found.append(
            "answers of short and of long prompts are taken to be alike: metrics do not say which "
            "answer belongs to which prompt"
        )
    rate = seen.counts.prefix_hit_rate or 0.0
    if rate >= _WORTH_SAYING:
        held = (
            f"{format_tokens(math.floor(reuse.shared))} tokens of that by all, as running requests "
            "hold so much less than their lengths"
            if reuse.shared >= 1
            else "none of that by all requests, which needs the most memory"
        )
        found.append(f"the prefix cache had {rate:.0%} of the prompts' tokens; {held}")
    if seen.longest_prompt is None or seen.longest_output is None:
        found.append(
            "the longest lengths are the upper edges of their buckets, as far as the model's "
            "length and the sum of all lengths allow them"
        )
    if seen.counts.drafts:
        found.append(
            "the servers decode speculatively, whose speed is not modelled: a plan is without it"
        )
    found.append(
        "what answers need is not in metrics: needs is whole_document unless you say lookup or "
        "recent_only"
    )
    return tuple(found)


def _least(*values: int | None) -> int | None:
    return min((v for v in values if v is not None), default=None)


def _rounded(rate: float) -> float:
    return float(f"{max(rate, 1e-6):.{_DIGITS}g}")
