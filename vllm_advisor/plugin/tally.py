"""What a running engine was seen to do, and how that compares with what was expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.plugin.expected import Expected

_NEAR = 0.01  # a smaller difference in tokens is none: vLLM measures memory anew at each start
_LITTLE_USED = 0.25
_SEEN_ENOUGH = 20  # requests before a verdict on their lengths


@dataclass(slots=True, kw_only=True)
class Actual:
    """What vLLM itself made of the cache; None before the engine is ready, or if not known."""

    tokens: int | None = None
    num_gpu_blocks: int | None = None
    max_concurrency: float | None = None


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts since the start, and peaks. Lengths in tokens, ``kv_usage`` as shares of the cache."""

    running: int = 0
    waiting: int = 0
    running_peak: int = 0
    waiting_peak: int = 0
    kv_usage: float = 0.0
    kv_usage_peak: float = 0.0
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    prompt_tokens_max: int = 0
    output_tokens: int = 0
    output_tokens_max: int = 0

    def add(self, scheduler_stats: Any, iteration_stats: Any) -> None:
        """Count one step: vLLM's SchedulerStats and IterationStats, either of them None.

        Raises:
            AttributeError: they lack what every known version has.
        """
        if scheduler_stats is not None:
            self.running = scheduler_stats.num_running_reqs
            # vLLM's metric of waiting requests counts those that it put off, too.
            put_off = getattr(scheduler_stats, "num_skipped_waiting_reqs", 0)
            self.waiting = scheduler_stats.num_waiting_reqs + put_off
            self.kv_usage = scheduler_stats.kv_cache_usage
            self.running_peak = max(self.running_peak, self.running)
            self.waiting_peak = max(self.waiting_peak, self.waiting)
            self.kv_usage_peak = max(self.kv_usage_peak, self.kv_usage)
            prefix = scheduler_stats.prefix_cache_stats
            if prefix is not None:
                self.prefix_queries += prefix.queries
                self.prefix_hits += prefix.hits
        if iteration_stats is not None:
            self.preemptions += iteration_stats.num_preempted_reqs
            for one in iteration_stats.finished_requests:
                self.requests += 1
                self.prompt_tokens += one.num_prompt_tokens
                self.output_tokens += one.num_generation_tokens
                self.prompt_tokens_max = max(self.prompt_tokens_max, one.num_prompt_tokens)
                self.output_tokens_max = max(self.output_tokens_max, one.num_generation_tokens)

    @property
    def prefix_hit_rate(self) -> float:
        """Share of the prompt tokens asked for that the prefix cache had; 0 if none were."""
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else 0.0


def deviation(actual: Actual, expected: Expected | None) -> float | None:
    """How much larger the KV cache is than expected, as a share; None if either is not known."""
    if expected is None or not expected.tokens or actual.tokens is None:
        return None
    return actual.tokens / expected.tokens - 1


def size_verdict(actual: Actual, expected: Expected | None) -> tuple[bool, str]:
    """Whether the KV cache is as expected, and one sentence about it."""
    if actual.tokens is None:
        return True, "KV cache size not known"
    text = f"KV cache {actual.tokens:,} tokens"
    if actual.num_gpu_blocks is not None:
        text += f" in {actual.num_gpu_blocks:,} blocks"
    share = deviation(actual, expected)
    if expected is None or share is None:
        return True, f"{text}, nothing was planned or predicted"
    if actual.tokens == expected.tokens:
        return True, f"{text}, as {expected.by}"
    text = f"{text}, {expected.by} {expected.tokens:,} ({share:+.1%})"
    return abs(share) <= _NEAR, text


def load_verdict(tally: Tally, actual: Actual, expected: Expected | None) -> list[str]:
    """What of the load is not as it should be; empty if all is well."""
    found = []
    if tally.preemptions:
        found.append(
            f"{tally.preemptions} preemptions: the KV cache is too small for so many requests "
            "of such lengths (lower max-num-seqs, or give it more memory)"
        )
    many = (expected.max_concurrency if expected else None) or actual.max_concurrency
    if tally.waiting_peak and tally.kv_usage_peak < _LITTLE_USED:
        found.append(
            f"up to {tally.waiting_peak} requests waited while at most "
            f"{tally.kv_usage_peak:.0%} of the KV cache was used (max-num-seqs may be too low)"
        )
    elif many and tally.running_peak + tally.waiting_peak > many and tally.waiting_peak:
        found.append(f"up to {tally.waiting_peak} requests waited: more than one server holds")
    longest = expected.longest_prompt if expected else None
    if longest and tally.prompt_tokens_max > longest:
        found.append(
            f"a prompt of {tally.prompt_tokens_max:,} tokens, planned were {longest:,} at most"
        )
    length = expected.max_model_len if expected and expected.by == "planned" else None
    seen = tally.prompt_tokens_max + tally.output_tokens_max
    if length and tally.requests >= _SEEN_ENOUGH and seen * 4 < length:
        found.append(f"no request came near max-model-len {length:,}: the longest were {seen:,}")
    return found


def prefix(expected: Expected | None, engine: int) -> str:
    """Which instance and engine a line is about; empty where that is clear."""
    named = f"{expected.instance}: " if expected and expected.instance else ""
    return f"{named}engine {engine}: " if engine else named


def line(tally: Tally, actual: Actual, expected: Expected | None) -> tuple[bool, str]:
    """Whether all is as expected, and the verdict in one line."""
    as_expected, size = size_verdict(actual, expected)
    faults = load_verdict(tally, actual, expected)
    text = (
        f"{size}; used at most {tally.kv_usage_peak:.1%}; running {tally.running} "
        f"(most {tally.running_peak}), waiting {tally.waiting} (most {tally.waiting_peak}), "
        f"preemptions {tally.preemptions}, prefix hits {tally.prefix_hit_rate:.0%}"
    )
    if tally.requests:
        mean = tally.prompt_tokens // tally.requests, tally.output_tokens // tally.requests
        text += (
            f"; {tally.requests:,} requests: prompts of {mean[0]:,} tokens "
            f"(most {tally.prompt_tokens_max:,}), answers of {mean[1]:,} "
            f"(most {tally.output_tokens_max:,})"
        )
    return as_expected and not faults, ". ".join((text, *faults))
