"""Engines for tests of latency: a bundled model on a GPU with its real sizes and constants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.sizing import SizeReport, size
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.performance import station_of
from vllm_advisor.sizing.steady_state import Station, sequences_held


@cache
def _sized(model: str, gpu: str, args: tuple[tuple[str, Any], ...]) -> tuple[SizeReport, Station]:
    report = size(model, gpu=gpu, **dict(args))
    assert report.fits, f"{model} does not fit on {gpu}"
    facts = find_model(model)
    station = station_of(
        facts,
        report.settings,
        find_gpu(gpu),
        cache_layout(facts, report.settings),
        load_latency(),
        num_gpu_blocks=report.figures.capacity.num_gpu_blocks,
        prompt=2,
        output=1,
    )
    return report, station


def station(
    model: str, gpu: str, *, prompt: float, output: float, cached: float = 0.0, **args: Any
) -> Station:
    """The engine with requests of these lengths; ``args`` by vLLM's dest names."""
    report, found = _sized(model, gpu, tuple(sorted(args.items())))
    layout = cache_layout(find_model(model), report.settings)
    blocks = report.figures.capacity.num_gpu_blocks
    held = sequences_held(layout, blocks, prompt, output)
    return replace(found, prompt=prompt, output=output, cached=min(cached, prompt - 1), held=held)
