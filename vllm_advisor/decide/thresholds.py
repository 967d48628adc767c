"""How long a prompt an instance takes, from its own limits: length, cache and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.layout import Slot
from vllm_advisor.decide.reasons import formula
from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.attention_cost import prefill_flops
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.types.routing import Bound
from vllm_advisor.types.sizing import Figure
from vllm_advisor.units import ceil_div, format_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Longest prompt of an instance, what bounds it and the figures behind."""

    max_prompt_tokens: int
    reserved_output_tokens: int
    bound_by: Bound
    reason: str
    figures: tuple[Figure, ...]


def threshold(slot: Slot, *, others_take_more: bool) -> Threshold:
    """The least of what length, cache and time allow, and never less than its own prompts.

    Its own classes are planned for where they are; only what nobody planned for is sent on earlier.

    Args:
        slot: the instance, with its chosen candidate.
        others_take_more: another instance reads longer prompts: then those that would crowd the
            cache or miss the target for the first token are better off there.
    """
    own = slot.search.demands
    reserved = max(d.request.output_tokens.max for d in own)
    scope = f"routing.{slot.name}"
    length = slot.search.context.max_model_len - reserved
    bounds: list[tuple[int, Bound, Figure]] = [
        (
            length,
            Bound.LENGTH,
            Figure(
                id=f"{scope}.prompt-by-length",
                value=length,
                unit="tokens",
                formula=f"max_model_len {format_tokens(slot.search.context.max_model_len)} - "
                f"{format_tokens(reserved)}, the longest answer of its classes",
                source=formula("routing-threshold"),
            ),
        )
    ]
    least = max(d.max_tokens - d.request.output_tokens.max for d in own)
    if others_take_more:
        bounds += [
            (int(figure.value), bound, figure)
            for bound, figure in (
                (Bound.CAPACITY, _by_capacity(slot, scope, reserved, length)),
                (Bound.SLO, _by_time(slot, scope, own, length)),
            )
            if figure is not None
        ]
    tightest, bound, _ = min(bounds, key=lambda each: each[0])
    taken = min(length, max(tightest, least))
    reason = _REASONS[bound]
    if taken > tightest:
        reason += (
            f"; raised from {format_tokens(tightest)} to the longest prompt of its classes, for "
            "which it is planned at their 95th percentile"
        )
    return Threshold(
        max_prompt_tokens=taken,
        reserved_output_tokens=reserved,
        bound_by=bound,
        reason=reason,
        figures=tuple(figure for *_, figure in bounds),
    )


_REASONS = {
    Bound.LENGTH: "the longest answer of its classes has to fit beside the prompt within "
    "max_model_len, at whose end vLLM cuts an answer off without an error",
    Bound.CAPACITY: "with a longer prompt each, the planned requests at once would not fit into "
    "its KV cache together",
    Bound.SLO: "no GPU of this type reads a longer prompt within the target for the first token, "
    "even at its peak rate, and others would wait behind it",
}


def _by_capacity(slot: Slot, scope: str, reserved: int, longest: int) -> Figure | None:
    chosen, search = slot.chosen, slot.search
    if chosen.figures is None:
        return None
    layout = cache_layout(search.setting.model, chosen.settings)
    engines = chosen.replicas * chosen.settings.data_parallel_size
    together = ceil_div(sum(d.concurrency for d in chosen.demands), engines)
    blocks = chosen.figures.capacity.num_gpu_blocks

    def holds(prompt: int) -> bool:
        return 1 + together * layout.request_blocks(prompt + reserved) <= blocks

    return Figure(
        id=f"{scope}.prompt-by-capacity",
        value=_largest(holds, longest),
        unit="tokens",
        formula=f"longest prompt, up to {format_tokens(longest)}, of which {together} with their "
        f"answers fit into {blocks:,} blocks at once (one engine's share)",
        inputs=(f"{slot.name}.kv.blocks",),
        source=formula("routing-threshold"),
    )


def _by_time(slot: Slot, scope: str, own: tuple[Demand, ...], longest: int) -> Figure | None:
    """What the GPUs can read in time if nothing but arithmetic took any; ``None`` if unknown."""
    targets = [d.request.slo.ttft_ms for d in own if d.request.slo.ttft_ms is not None]
    chosen, setting = slot.chosen, slot.search.setting
    rate = _peak(slot)
    if not targets or rate is None:
        return None
    gpus, seconds = chosen.settings.gpus, min(targets) / 1000

    def in_time(prompt: int) -> bool:
        return prefill_flops(setting.model, prompt).total <= rate * gpus * seconds

    try:
        value = _largest(in_time, longest)
    except NotModelledError:
        return None
    return Figure(
        id=f"{scope}.prompt-by-time",
        value=value,
        unit="tokens",
        formula=f"longest prompt, up to {format_tokens(longest)}, whose operations take "
        f"{min(targets):g} ms at most on {gpus} x {rate / 1e12:g} TFLOPS: a floor, real prefills "
        "take longer",
        source=formula("routing-threshold"),
    )


def _peak(slot: Slot) -> int | None:
    """Operations per second of one GPU at most; ``None`` where it is not recorded.

    Weights of 8 bits, or a cache of 8 bits, may be multiplied in 8 bits: the higher rate keeps the
    time a floor. Of 4 bits it is not known in which numbers they are multiplied.
    """
    setting, settings = slot.search.setting, slot.chosen.settings
    gpu, published = setting.node.accelerator, setting.model.quantization
    bits = 8 if settings.quantization == "fp8" else published.bits if published else 16
    if bits < 8:
        return None
    if bits == 8 or settings.kv_cache_dtype.startswith("fp8"):
        return gpu.fp8_flops or gpu.bf16_flops
    return gpu.bf16_flops


def _largest(holds: Callable[[int], bool], longest: int) -> int:
    """Largest number up to ``longest`` for which ``holds``; 0 if for none."""
    if holds(longest):
        return longest
    low, high = 0, longest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
