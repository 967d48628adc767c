"""What replayed requests went through, as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vllm_advisor.types.replay import Distribution, Level, Replayed

_MS = 1000


def replay_data(replayed: Replayed) -> dict[str, Any]:
    """JSON types: times in milliseconds but for ``seconds``; keys are only ever added."""
    return {
        "requests": len(replayed.requests),
        "prompt_tokens": replayed.prompt_tokens,
        "output_tokens": replayed.output_tokens,
        "seconds": round(replayed.seconds, 3),
        "ttft_ms": _milliseconds(replayed.ttft),
        "tpot_ms": _milliseconds(replayed.tpot),
        "itl_ms": _milliseconds(replayed.itl),
        "e2e_ms": _milliseconds(replayed.e2e),
        "requests_per_second": round(replayed.requests_per_second, 4),
        "output_tokens_per_second": round(replayed.output_tokens_per_second, 2),
        "steady_requests_per_second": round(replayed.steady_requests_per_second, 4),
        "running": _level(replayed.running),
        "waiting": _level(replayed.waiting),
        "kv_use": _level(replayed.kv_use, 4),
        "preemptions": replayed.preemptions,
        "unstable": replayed.unstable,
    }


def _milliseconds(of: Distribution | None) -> dict[str, float] | None:
    if of is None:
        return None
    return {name: round(seconds * _MS, 2) for name, seconds in asdict(of).items()}


def _level(level: Level, digits: int = 1) -> dict[str, float]:
    return {"mean": round(level.mean, digits), "max": round(level.max, digits)}
