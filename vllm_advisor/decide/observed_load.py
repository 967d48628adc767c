"""What is wrong with the load of running servers, by what they count.

Thresholds are named here; they are judgements, not measurements, and each finding shows the
figures it is seen from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from vllm_advisor.sizing.histograms import shape_of
from vllm_advisor.types.observation import Histogram, LoadFinding, Observed
from vllm_advisor.types.workload import SLO

_FULL = 0.95  # share of the KV cache
_LITTLE = 0.25  # the same, at the most
_PREEMPTED = 0.01  # of the requests
_WAITED = 0.2  # of the time to the first token, spent waiting
_WAITING = 0.5  # requests on average
_STALL, _LONG_PROMPT = 5.0, 2048  # ITL's p99 over its median; tokens
_SEEN_ENOUGH = 20  # requests
_ABORTED, _CUT = 0.05, 0.1  # of the requests
_UNEVEN, _BUSY = 2.0, 2.0
_SPARE = 4  # times the longest request


def load_findings(seen: Observed, *, slo: SLO) -> tuple[LoadFinding, ...]:
    """What is found, the most pressing first."""
    return (
        *_targets(seen, slo),
        *_kv_cache(seen),
        *_waiting(seen),
        *_stalls(seen),
        *_ends(seen),
        *_replicas(seen),
        *_prefix_cache(seen),
        *_spare(seen),
    )


def _targets(seen: Observed, slo: SLO) -> Iterator[LoadFinding]:
    counts = seen.counts
    for name, target, histogram in (
        ("TTFT", slo.ttft_ms, counts.ttft),
        ("ITL", slo.itl_ms, counts.itl),
        ("end-to-end latency", slo.e2e_ms, counts.e2e),
    ):
        p95 = percentile_ms(histogram, 0.95)
        if target is not None and p95 is not None and p95 > target:
            yield LoadFinding(
                id="target-missed",
                severity="warning",
                message=f"{name} at the 95th percentile is {p95:,.0f} ms, the target is "
                f"{target:,.0f} ms",
                fix="see what plan changes, below or with --gpu",
                evidence={"quantity": name, "p95_ms": round(p95, 1), "target_ms": target},
            )


def _kv_cache(seen: Observed) -> Iterator[LoadFinding]:
    usage, waiting = _most(seen, "kv_cache_usage"), _most(seen, "waiting")
    preempted = seen.counts.preemptions or 0.0
    if usage >= _FULL and (waiting >= 1 or preempted):
        yield LoadFinding(
            id="kv-bound",
            severity="warning",
            message=f"the KV cache was full (up to {usage:.0%}) while {waiting:,.0f} requests "
            "waited: memory limits how many run at once",
            fix="more memory for the cache (kv_cache_dtype fp8, a higher gpu_memory_utilization, "
            "more GPUs for an engine) or more replicas",
            evidence={"kv_cache_usage_peak": round(usage, 3), "waiting_peak": waiting},
        )
    share = preempted / seen.counts.requests if seen.counts.requests else 0.0
    if preempted and share >= _PREEMPTED:
        yield LoadFinding(
            id="preemption",
            severity="warning",
            message=f"{preempted:,.0f} preemptions for {seen.counts.requests:,.0f} requests: their "
            "prompts are computed again",
            fix="a lower max_num_seqs, so that what is admitted also fits when it has grown, or "
            "more memory for the cache",
            evidence={"preemptions": preempted, "per_request": round(share, 4)},
        )


def _waiting(seen: Observed) -> Iterator[LoadFinding]:
    usage = _most(seen, "kv_cache_usage")
    if usage >= _FULL:  # kv-bound says why
        return
    counts = seen.counts
    waiting = math.fsum(e.waiting.mean for e in seen.engines)
    queue, ttft = counts.queue, counts.ttft
    waits = queue.mean if queue else None
    to_first = ttft.mean if ttft else None
    part = waits / to_first if waits and to_first else 0.0
    if waiting < _WAITING and part < _WAITED:
        return
    engine = max(seen.engines, key=lambda one: one.running.largest)
    running = engine.running
    evidence = {
        "waiting_mean": round(waiting, 2),
        "queue_seconds_mean": None if waits is None else round(waits, 4),
        "kv_cache_usage_peak": round(usage, 3),
        "running_peak": running.largest,
    }
    # With places and memory left, every step takes on tokens of the prompts that wait: hundreds of
    # them, where answers alone are a token for each request. Readings may have missed the most.
    steps = counts.step_tokens
    of_answers_only = (
        not counts.drafts
        and steps is not None
        and steps.count > 0
        and shape_of(steps).quantile(0.5).low < running.largest + engine.waiting.largest
    )
    if waiting >= _WAITING and of_answers_only:
        yield LoadFinding(
            id="queueing",
            severity="warning",
            message=f"{waiting:,.1f} requests waited on average while an engine ran "
            f"{running.largest:,.0f} at most, used {usage:.0%} of its KV cache, and took no prompt "
            "into half of its steps: max_num_seqs looks like the limit",
            fix=f"raise max_num_seqs above {running.largest:,.0f} as far as the ITL target allows, "
            "or add replicas",
            evidence=evidence,
        )
        return
    yield LoadFinding(
        id="queueing",
        severity="warning",
        message=f"requests spent {part:.0%} of the time to their first token waiting, with "
        f"{usage:.0%} of the KV cache used at most: prompts come faster than steps take them on",
        fix="more replicas, a larger max_num_batched_tokens where the ITL target allows it, or an "
        "instance of their own for long prompts",
        evidence=evidence,
    )


def _stalls(seen: Observed) -> Iterator[LoadFinding]:
    itl = seen.counts.itl
    if itl is None or seen.counts.requests < _SEEN_ENOUGH:
        return
    middle, tail = percentile_ms(itl, 0.5), percentile_ms(itl, 0.99)
    longest = shape_of(seen.counts.prompt_tokens).quantile(0.95).point
    if not middle or not tail or tail < _STALL * middle or longest < _LONG_PROMPT:
        return
    yield LoadFinding(
        id="long-prefill",
        severity="warning",
        message=f"one token in a hundred takes {tail:,.0f} ms or more, half of them "
        f"{middle:,.0f} ms: prompts of {longest:,.0f} tokens (p95) are computed between them",
        fix="an instance of their own for long prompts, a smaller max_num_batched_tokens, or "
        "long_prefill_token_threshold",
        evidence={
            "itl_p50_ms": round(middle, 1),
            "itl_p99_ms": round(tail, 1),
            "prompt_p95": round(longest),
        },
    )


def _ends(seen: Observed) -> Iterator[LoadFinding]:
    counts = seen.counts
    if counts.requests < _SEEN_ENOUGH:
        return
    given_up = counts.finished.get("abort", 0.0) / counts.requests
    if given_up >= _ABORTED:
        yield LoadFinding(
            id="aborted",
            severity="warning",
            message=f"clients gave up {given_up:.0%} of the requests before they were done",
            fix="compare their timeouts with the end-to-end latency",
            evidence={"aborted": counts.finished["abort"], "share": round(given_up, 3)},
        )
    failed = counts.finished.get("error", 0.0)
    if failed:
        yield LoadFinding(
            id="failed",
            severity="warning",
            message=f"{failed:,.0f} requests ended with an error",
            fix="see the server's log",
            evidence={"failed": failed},
        )
    cut = counts.finished.get("length", 0.0) / counts.requests
    if cut >= _CUT:
        yield LoadFinding(
            id="cut-off",
            severity="info",
            message=f"{cut:.0%} of the answers ended at max_tokens or at the model's length",
            fix="if that is not meant, raise max_tokens in the requests",
            evidence={"cut": counts.finished["length"], "share": round(cut, 3)},
        )


def _replicas(seen: Observed) -> Iterator[LoadFinding]:
    means = sorted((e.running.mean + e.waiting.mean, e.name) for e in seen.engines)
    if len(means) < 2 or means[-1][0] < _BUSY or means[-1][0] < _UNEVEN * means[0][0]:
        return
    (least, idle), (most, busy) = means[0], means[-1]
    yield LoadFinding(
        id="uneven",
        severity="warning",
        message=f"engine {busy} had {most:,.1f} requests on average, engine {idle} {least:,.1f}",
        fix="route by load (least requests, or by prefix with a limit on the load)",
        evidence={"most": round(most, 2), "least": round(least, 2)},
    )


def _prefix_cache(seen: Observed) -> Iterator[LoadFinding]:
    counts = seen.counts
    if seen.cache_config.get("enable_prefix_caching") == "False":
        yield LoadFinding(
            id="cache-off",
            severity="warning",
            message="prefix caching is off: whatever prompts have in common is computed again",
            fix="leave --no-enable-prefix-caching out",
            evidence={"enable_prefix_caching": "False"},
        )
    elif counts.prefix_hit_rate == 0.0 and counts.requests >= _SEEN_ENOUGH:
        yield LoadFinding(
            id="cache-unused",
            severity="info",
            message="the prefix cache had nothing of any prompt",
            fix="if prompts share a beginning, put what changes (dates, names) behind it; with "
            "several replicas, route equal beginnings to the same one",
            evidence={"prefix_queries": counts.prefix_queries, "prefix_hits": 0},
        )


def _spare(seen: Observed) -> Iterator[LoadFinding]:
    usage, waiting = _most(seen, "kv_cache_usage"), _most(seen, "waiting")
    if usage < _LITTLE and not waiting:
        yield LoadFinding(
            id="oversize",
            severity="info",
            message=f"at most {usage:.0%} of the KV cache was used and nothing waited",
            fix="fewer or smaller GPUs may do, if this was the busiest time: see what plan changes",
            evidence={
                "kv_cache_usage_peak": round(usage, 4),
                "running_peak": _most(seen, "running"),
            },
        )
    longest = (
        shape_of(seen.counts.prompt_tokens, most=seen.longest_prompt).largest
        + shape_of(seen.counts.output_tokens, most=seen.longest_output).largest
    )
    length = seen.max_model_len
    if length and seen.counts.requests >= _SEEN_ENOUGH and length >= _SPARE * longest:
        yield LoadFinding(
            id="context-unused",
            severity="info",
            message=f"no request was longer than {longest:,.0f} tokens, max_model_len is "
            f"{length:,}: one request may take {length / longest:,.0f} times the cache of those "
            "seen",
            fix="lower max_model_len to what has to be served",
            evidence={"longest": round(longest), "max_model_len": length},
        )


def percentile_ms(histogram: Histogram | None, share: float) -> float | None:
    """A percentile of a histogram of seconds, in milliseconds; None where there is nothing."""
    if histogram is None or not histogram.count:
        return None
    return shape_of(histogram).quantile(share).point * 1000


def _most(seen: Observed, gauge: str) -> float:
    return max((getattr(e, gauge).largest for e in seen.engines), default=0.0)
