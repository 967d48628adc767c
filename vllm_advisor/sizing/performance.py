"""Latency and throughput of one instance under a load: points, and what 80 % of others measured."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.steady_state import (
    Served,
    Station,
    closed_loop,
    open_loop,
    sequences_held,
)
from vllm_advisor.sizing.step_work import step_work
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyFit, Range, Regime, Span
from vllm_advisor.types.model import ModelFacts

_UNLOADED = 4  # requests at once, up to which TTFT is a prefill and little else
_LIMITED = (Regime.KV_LIMITED, Regime.SEQ_LIMITED)
_FIX = "measure it with `vllm bench serve`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What a deployment of equal engines does under a load; times in seconds.

    ``ttft`` is the mean, ``ttft_floor`` of a request that is alone, ``itl_full_step`` the time
    between two tokens while a prompt is read. ``running`` and ``waiting`` are of all engines.
    """

    ttft_floor: float
    ttft: Span
    ttft_p50: Span
    ttft_p90: Span
    tpot: Span
    itl_full_step: float
    prompt_steps: float
    e2e: Span
    output_tokens_per_second: Span
    requests_per_second: float
    running: float
    waiting: float
    regime: Regime
    saturated: bool


def station_of(
    model: ModelFacts,
    settings: InstanceSettings,
    gpu: Accelerator,
    layout: CacheLayout,
    fit: LatencyFit,
    *,
    num_gpu_blocks: int,
    prompt: float,
    output: float,
    cached: float = 0.0,
) -> Station:
    """One engine and its mean request.

    Args:
        model: the model as it is served.
        settings: resolved engine arguments.
        gpu: the GPU.
        layout: of the KV cache.
        fit: the constants.
        num_gpu_blocks: blocks of the KV cache.
        prompt: mean tokens of a prompt.
        output: mean tokens of an answer.
        cached: tokens of the prompt that prefix caching finds.

    Raises:
        NotModelledError: something of it has no formula here.
    """
    refuse(model, settings)
    return Station(
        work=step_work(model, settings, gpu, layout),
        constants=fit.constants,
        prompt=prompt,
        output=output,
        cached=min(cached, prompt - 1),
        max_num_seqs=settings.max_num_seqs,
        held=sequences_held(layout, num_gpu_blocks, prompt, output),
        max_num_batched_tokens=settings.max_num_batched_tokens,
        stages=settings.pipeline_parallel_size,
    )


def refuse(model: ModelFacts, settings: InstanceSettings) -> None:
    """Raise what the formulas have no term for.

    Raises:
        NotModelledError: speculative decoding, context parallelism, offloaded weights, eager
            execution, or a model that generates no text by itself.
    """
    missing = {
        "speculative decoding": settings.speculation is not None,
        "prefill or decode context parallelism": settings.prefill_context_parallel_size > 1
        or settings.decode_context_parallel_size > 1,
        "weights kept in CPU memory": settings.offload is not None,
        "execution without CUDA graphs (--enforce-eager)": settings.enforce_eager,
        f"{model.model_id}, which generates no text": not model.generates or model.bidirectional,
        "a model with an encoder beside its decoder": model.encoder_decoder,
    }
    for what, present in missing.items():
        if present:
            raise NotModelledError(f"the speed of {what} is not modelled", fix=_FIX)


def uncertain(model: ModelFacts, settings: InstanceSettings) -> tuple[str, ...]:
    """What the constants were not fitted to, or what is left out."""
    said = []
    if settings.pipeline_parallel_size > 1:
        said.append("pipeline parallelism: its stages are taken to be equal and always busy")
    if settings.max_loras:
        said.append("LoRA: what adapters add to a step is left out")
    if model.multimodal:
        said.append("images, audio and video: the time of their encoders is left out")
    if any(spec.state is not None for spec in model.cache_specs):
        said.append("recurrent layers: only the reading of their states is counted")
    if any(spec.sparse or spec.content_bytes is not None for spec in model.cache_specs):
        said.append("sparse attention: choosing what is read is not counted")
    if settings.enable_expert_parallel and settings.gpus > 1:
        said.append("expert parallelism: experts are taken to be equally busy")
    return tuple(said)


def performance(
    station: Station,
    fit: LatencyFit,
    *,
    engines: int = 1,
    concurrency: float | None = None,
    requests_per_second: float | None = None,
) -> Performance:
    """Steady state of ``engines`` equal engines that share a load.

    Args:
        station: one of them.
        fit: constants and ranges.
        engines: data-parallel engines, or replicas.
        concurrency: requests in the system at all times (closed loop), or
        requests_per_second: arriving at random (open loop).
    """
    if requests_per_second is not None:
        served, at_work = open_loop(station, requests_per_second / engines), float(engines)
    else:
        served = closed_loop(station, max(1.0, (concurrency or 1.0) / engines))
        at_work = min(float(engines), max(1.0, concurrency or 1.0))  # the others have no request
    unloaded = requests_per_second is None and (concurrency or 1.0) <= _UNLOADED
    ttft_range = _range(fit, "ttft_unloaded" if unloaded else "ttft", served)
    tpot = Span.around(served.tpot, _range(fit, "tpot", served))
    ttft = Span.around(served.ttft, ttft_range)
    after = station.output - 1
    return Performance(
        ttft_floor=served.ttft_floor,
        ttft=ttft,
        ttft_p50=Span.around(served.ttft_at(0.5), ttft_range),
        ttft_p90=Span.around(served.ttft_at(0.9), ttft_range),
        tpot=tpot,
        itl_full_step=station.full_step(served.running),
        prompt_steps=station.prompt_share(served.running),
        e2e=Span(
            point=ttft.point + after * tpot.point,
            low=ttft.low + after * tpot.low,
            high=ttft.high + after * tpot.high,
        ),
        output_tokens_per_second=Span.around(
            served.tokens_per_second * at_work, _range(fit, "throughput", served)
        )
        if requests_per_second is None or served.saturated
        else _offered(served.tokens_per_second * at_work),
        requests_per_second=served.requests_per_second * at_work,
        running=served.running * at_work,
        waiting=served.waiting * at_work,
        regime=served.regime,
        saturated=served.saturated,
    )


def _offered(tokens_per_second: float) -> Span:
    """What arrives is served: its number is known."""
    return Span(point=tokens_per_second, low=tokens_per_second, high=tokens_per_second)


def _range(fit: LatencyFit, name: str, served: Served) -> Range:
    limited = served.waiting > 0 and served.regime in _LIMITED
    key = f"{name.removesuffix('_unloaded')}_limited" if limited else name
    return fit.ranges.get(key) or fit.ranges[name]
