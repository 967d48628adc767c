"""Engines of several kinds, for the benchmark of replays and for their tests."""

from __future__ import annotations

from functools import cache
from typing import Any

from vllm_advisor.api.timed_engine import find_engine
from vllm_advisor.sizing.steady_state import Station, open_loop

STATIONS = (
    ("qwen3-32b", "h100-sxm", 2),
    ("gpt-oss-120b", "h200-sxm", 1),
    ("llama-3.1-8b-instruct", "a100-sxm4-80", 1),
    ("deepseek-v3", "h200-sxm", 8),
)


@cache
def station(
    model: str, gpu: str, gpus: int, prompt: float, output: float, **engine_args: Any
) -> Station:
    """One engine of a deployment."""
    found = find_engine(
        model, gpu=gpu, gpu_count=gpus, vllm_version=None, fit=None, engine_args=engine_args
    )
    return found.station(prompt, output)


def saturation(engine: Station) -> float:
    """Requests per second from which the formula says that they wait without end."""
    low, high = 1e-3, 1e4
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        if open_loop(engine, middle).saturated:
            high = middle
        else:
            low = middle
    return low
