"""The answer of observe()."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from vllm_advisor.api.observed_changes import Changes
from vllm_advisor.decide.observed_classes import ObservedTraffic
from vllm_advisor.decide.observed_load import percentile_ms
from vllm_advisor.render.observed_workload import class_keys
from vllm_advisor.sizing.histograms import shape_of
from vllm_advisor.types.observation import Gauge, Histogram, LoadFinding, Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveReport:
    """What was seen; ``to_dict()`` is what ``observe --format json`` prints.

    ``workload`` is the text of a workload file; of its classes alone where no GPU is given.
    ``changes`` is what a plan for it would change; without one, it says why there is none.
    """

    seen: Observed
    traffic: ObservedTraffic
    findings: tuple[LoadFinding, ...]
    workload: str
    changes: Changes

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are only ever added (see ``schema_version``)."""
        seen, counts = self.seen, self.seen.counts
        return {
            "schema_version": "1",
            "source": seen.source,
            "kind": seen.kind,
            "model": seen.model,
            "served_from": seen.served_from,
            "vllm_version": seen.vllm_version,
            "max_model_len": seen.max_model_len,
            "seconds": round(seen.seconds, 3),
            "since_start": seen.since_start,
            "requests": {
                "ended": counts.requests,
                "by_reason": dict(counts.finished),
                "per_second": seen.requests_per_second,
                "peak_per_second": seen.peak_requests_per_second,
                "peak_seconds": seen.peak_seconds,
                "at_once": _level(seen.in_system),
            },
            "tokens": {
                "prompt": _sizes(counts.prompt_tokens, seen.longest_prompt),
                "output": _sizes(counts.output_tokens, seen.longest_output),
                "step": _sizes(counts.step_tokens),
            },
            "latency_ms": {
                name: {
                    "mean": histogram.mean * 1000,
                    "p50": percentile_ms(histogram, 0.5),
                    "p95": percentile_ms(histogram, 0.95),
                    "p99": percentile_ms(histogram, 0.99),
                }
                for name, histogram in (
                    ("ttft", counts.ttft),
                    ("itl", counts.itl),
                    ("e2e", counts.e2e),
                    ("queue", counts.queue),
                )
                if histogram is not None and histogram.mean is not None
            },
            "prefix_cache": {
                "queries": counts.prefix_queries,
                "hits": counts.prefix_hits,
                "hit_rate": counts.prefix_hit_rate,
            },
            "preemptions": counts.preemptions,
            "engines": [
                {
                    "name": engine.name,
                    "running": _level(engine.running),
                    "waiting": _level(engine.waiting),
                    "kv_cache_usage": _level(engine.kv_cache_usage),
                    "kv_cache_tokens": engine.kv_cache_tokens,
                }
                for engine in seen.engines
            ],
            "findings": [asdict(finding) for finding in self.findings],
            "classes": [
                class_keys(each.request) | {"share": round(each.share, 4)}
                for each in self.traffic.classes
            ],
            "workload": self.workload,
            "plan": self.changes.to_dict(),
            "assumptions": list(self.traffic.assumptions),
            "notes": list(seen.notes),
        }


def _level(level: Gauge) -> dict[str, float]:
    return {
        "mean": round(level.mean, 4),
        "largest": round(level.largest, 4),
        "readings": level.samples,
    }


def _sizes(histogram: Histogram | None, most: int | None = None) -> dict[str, Any] | None:
    if histogram is None or not histogram.count:
        return None
    shape = shape_of(histogram, most=most)
    return {
        "mean": histogram.total / histogram.count,
        **{f"p{share * 100:g}": shape.quantile(share).point for share in (0.5, 0.95, 0.99)},
        "buckets": [
            {"up_to": None if math.isinf(edge) else edge, "count": count}
            for edge, count in zip(histogram.edges, histogram.counts, strict=True)
            if count
        ],
    }
