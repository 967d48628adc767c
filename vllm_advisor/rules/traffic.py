"""What the traffic asks of one server: no rule, but what rules about load share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vllm_advisor.errors import AdvisorError, UnknownFactError
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.class_load import at_peak, class_load
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.load import Load, blocks_needed, requests_at_once
from vllm_advisor.sizing.mixed_load import mixed_load
from vllm_advisor.sizing.performance import refuse
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.sizing.step_work import step_work
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.workload import RequestClass

_FP8_BITS = 8
_FP4_CAPABILITY = 100  # from here on there is a peak for four bits, which is not recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How much of the traffic the KV cache holds at once, each request at its 95th percentile.

    ``blocks`` and ``needed`` are of one data-parallel engine; ``fit`` is the share of all
    ``at_once`` requests that the blocks there are hold.
    """

    at_once: int
    needed: int
    blocks: int

    @property
    def fits(self) -> bool:
        """All of them run at the same time."""
        return self.needed <= self.blocks

    @property
    def fit(self) -> int:
        """Requests that do run at the same time."""
        return min(self.at_once, self.at_once * self.blocks // self.needed)


def class_loads(
    model: ModelFacts,
    settings: InstanceSettings,
    gpu: Accelerator | None,
    classes: Iterable[RequestClass],
) -> tuple[Load, ...]:
    """Classes as the KV cache sees them: prompt and answer at the 95th percentile.

    How many requests of a stated rate are there at once follows from the speed of this server
    where that is modelled, else from the targets.
    """
    classes = tuple(classes)
    timed = _timed(model, settings, gpu, classes)
    return tuple(
        Load(
            tokens=request.prompt_tokens.p95 + request.output_tokens.p95,
            at_once=timed.get(request.name) or requests_at_once(request)[0],
            shared=request.shared_prefix_tokens,
        )
        for request in classes
    )


def _timed(
    model: ModelFacts,
    settings: InstanceSettings,
    gpu: Accelerator | None,
    classes: tuple[RequestClass, ...],
) -> dict[str, int]:
    """Requests at once of each class with a rate, where the server's speed is modelled."""
    if gpu is None or all(c.requests_per_second is None for c in classes):
        return {}
    fit = load_latency()
    try:
        layout = cache_layout(model, settings)
        refuse(model, settings)
        work = step_work(model, settings, gpu, layout)
    except AdvisorError:
        return {}

    def station(prompt: float, output: float, cached: float) -> Station:
        return Station(
            work=work,
            constants=fit.constants,
            prompt=prompt,
            output=output,
            cached=min(cached, prompt - 1),
            max_num_seqs=settings.max_num_batched_tokens // 2,
            held=math.inf,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            stages=settings.pipeline_parallel_size,
        )

    loads = [class_load(c, prefix_caching=settings.prefix_caching) for c in classes]
    found = mixed_load(station, loads, engines=settings.data_parallel_size)
    if found.saturated:
        return {}
    return {
        times.name: at_peak(times.running)
        for times, request in zip(found.classes, classes, strict=True)
        if request.requests_per_second is not None
    }


def held(
    model: ModelFacts,
    settings: InstanceSettings,
    figures: InstanceFigures,
    classes: Iterable[RequestClass],
    gpu: Accelerator | None,
) -> Held:
    """Hold the classes against the KV cache of one server.

    Raises:
        UnknownFactError: the layout of the cache is not known.
    """
    loads = class_loads(model, settings, gpu, classes)
    layout = layout_of(model, settings)
    return Held(
        at_once=sum(load.at_once for load in loads),
        needed=blocks_needed(layout, loads, settings.data_parallel_size),
        blocks=figures.capacity.num_gpu_blocks,
    )


def layout_of(model: ModelFacts, settings: InstanceSettings) -> CacheLayout:
    """The layout of the KV cache.

    Raises:
        UnknownFactError: it is not known, or vLLM refuses the settings.
    """
    try:
        return cache_layout(model, settings)
    except AdvisorError as error:
        raise UnknownFactError(error.what) from None


def peak_flops(subject: Subject) -> int | None:
    """Operations per second of one engine's GPUs together, at the peak no server reaches.

    ``None`` where the peak for these weights is not recorded.
    """
    model, node, settings = subject.model, subject.node, subject.settings
    if model is None or node is None or settings is None:
        return None
    gpu, quantization = node.accelerator, model.quantization
    bits = quantization.bits if quantization is not None else 16
    if settings.quantization is not None:
        bits = _FP8_BITS
    if bits < _FP8_BITS and gpu.capability >= _FP4_CAPABILITY:
        return None
    peak = gpu.bf16_flops
    if peak is not None and bits == _FP8_BITS:
        peak = max(peak, gpu.fp8_flops or 0)
    return peak * settings.ranks if peak is not None else None
