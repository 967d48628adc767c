"""Loads to replay: requests that arrive at random, or as soon as others are done.

All of them are the same for the same seed. Lengths and arrivals are drawn apart, so that another
rate brings the same requests, only closer together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from vllm_advisor.types.replay import ReplayRequest
from vllm_advisor.types.workload import TokenDistribution

SEED = 0
_P95 = 1.6448536269514722  # standard deviations from the median to the 95th percentile

_VARIED = 1.25  # 95th percentile of lengths of which only the mean is known, by their median
_WIDEST = 1.5  # longest of them, by the same

Lengths = int | TokenDistribution  # tokens: all alike, or log-normal


def around(mean: int, most: int) -> TokenDistribution:
    """Lengths that vary a little around a mean, as those of real requests do.

    Equal requests that start together end together, and those that follow them come together again:
    a closed loop of them never comes out of step, and its TTFT is that of its start.

    Args:
        mean: their mean, in tokens.
        most: the longest there may be.
    """
    spread = math.log(_VARIED) / _P95
    median = max(1, round(mean / math.exp(spread**2 / 2)))
    longest = max(median, min(most, round(_WIDEST * median)))
    return TokenDistribution(p50=median, p95=min(longest, round(_VARIED * median)), max=longest)


def poisson(
    rate: float,
    prompt: Lengths,
    output: Lengths,
    count: int,
    *,
    cached_share: float = 0.0,
    seed: int = SEED,
) -> list[ReplayRequest]:
    """Requests that arrive at random.

    Args:
        rate: requests per second, above 0.
        prompt: tokens of prompts.
        output: tokens of answers.
        count: how many requests.
        cached_share: of each prompt, what prefix caching finds.
        seed: another one draws others.
    """
    clock, random = 0.0, Random(f"arrivals {seed}")  # noqa: S311 - reproducible on purpose
    made = []
    for prompt_tokens, output_tokens in _drawn(prompt, output, count, seed):
        clock += random.expovariate(1.0) / rate
        cached = int(prompt_tokens * cached_share)
        made.append(ReplayRequest(clock, prompt_tokens, output_tokens, cached))
    return made


def closed(
    prompt: Lengths, output: Lengths, count: int, *, cached_share: float = 0.0, seed: int = SEED
) -> list[ReplayRequest]:
    """Requests for a closed loop, in which each comes when another is done."""
    return [
        ReplayRequest(0.0, prompt_tokens, output_tokens, int(prompt_tokens * cached_share))
        for prompt_tokens, output_tokens in _drawn(prompt, output, count, seed)
    ]


def _drawn(prompt: Lengths, output: Lengths, count: int, seed: int) -> Iterator[tuple[int, int]]:
    prompts, outputs = (Random(f"{what} {seed}") for what in ("prompts", "outputs"))  # noqa: S311
    for _ in range(count):
        yield _length(prompt, prompts), _length(output, outputs)


def _length(tokens: Lengths, random: Random) -> int:
    """Log-normal through p50 and p95, at most max."""
    if isinstance(tokens, int):
        return tokens
    drawn = tokens.p50 * math.exp(random.gauss(0.0, _spread(tokens)))
    return min(tokens.max, max(1, round(drawn)))


def _spread(tokens: TokenDistribution) -> float:
    """Standard deviation of the logarithm."""
    return math.log(max(tokens.p95, tokens.p50) / tokens.p50) / _P95


def mean_tokens(tokens: Lengths) -> float:
    """Mean of the lengths that are drawn: of a log-normal distribution that ends at max."""
    if isinstance(tokens, int):
        return float(tokens)
    spread = _spread(tokens)
    if not spread:
        return float(min(tokens.p50, tokens.max))
    end = math.log(tokens.max / tokens.p50) / spread
    below = tokens.p50 * math.exp(spread**2 / 2) * _share(end - spread)
    return below + tokens.max * (1 - _share(end))


def _share(deviations: float) -> float:
    """Of a normal distribution, what is below so many standard deviations."""
    return (1 + math.erf(deviations / math.sqrt(2))) / 2
