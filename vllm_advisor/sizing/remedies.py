"""What would make an instance start, or hold more: each change is sized again before it is named.

No rule of thumb: a change that does not help this model on this GPU is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from vllm_advisor.errors import AdvisorError
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.kv_cache import WINDOWED
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import AttentionChoice, Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures

# vLLM's budget does not see what is allocated after its profile run; more than this leaves no room.
_MOST_UTILIZATION = 0.95
_SEQUENCES = (512, 256, 128, 64, 32, 16, 8)
_CHUNKS = (4096, 2048, 1024)
_TENSOR_PARALLEL = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change of the arguments, what it gives up, and the figures with it."""

    flags: str
    costs: str
    figures: InstanceFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance whose arguments may change.

    Args:
        model: the model.
        settings: its resolved arguments.
        figures: what they give.
        accelerator: the GPU, if it is known.
        overheads: constants of the vLLM version.
        fp8: the attention backend with an FP8 cache, where the GPU has one.
        fp8_weights: the GPU runs FP8 weights, and these are in 16 bits.
        gpus: GPUs there are, or ``None`` when that is not known.
        memory_used: bytes that other processes hold on a GPU.
    """

    model: ModelFacts
    settings: InstanceSettings
    figures: InstanceFigures
    accelerator: Accelerator | None
    overheads: Overheads
    fp8: AttentionChoice | None = None
    fp8_weights: bool = False
    gpus: int | None = None
    memory_used: int = 0

    def sized(self, settings: InstanceSettings) -> InstanceFigures | None:
        """Figures with other settings, or ``None`` where vLLM refuses them."""
        if settings == self.settings:
            return None
        try:
            return size_instance(
                self.model, settings, accelerator=self.accelerator, overheads=self.overheads
            )
        except AdvisorError:
            return None


def remedies(case: Case) -> tuple[Remedy, ...]:
    """Changes under which vLLM starts, the cheapest first; of one argument where that is enough.

    Flags that only change how work is cut up come first, then those that give up precision, then
    those that take more GPUs. A shorter context is not among them: ``estimated_max_model_len``
    says how short it would have to be.
    """
    found = [r for r in _changes(case) if r.figures.starts]
    return tuple(r for r in found if r.figures.headroom) or tuple(found)


def denser(case: Case) -> Remedy | None:
    """Decode context parallelism over the same GPUs, where it holds more requests.

    Tensor parallelism keeps a latent cache (MLA) whole on every rank, and repeats KV heads beyond
    their number; decode context parallelism divides it instead.
    """
    settings = case.settings
    wider = range(settings.tensor_parallel_size, settings.decode_context_parallel_size, -1)
    for size in (s for s in wider if settings.tensor_parallel_size % s == 0):
        found = case.sized(replace(settings, decode_context_parallel_size=size))
        before = case.figures.capacity.max_concurrency
        if found and found.starts and found.capacity.max_concurrency > before:
            return Remedy(
                flags=f"--decode-context-parallel-size {size}",
                costs="an exchange between the ranks in every layer and step",
                figures=found,
            )
    return None


def _changes(case: Case) -> Iterator[Remedy]:
    settings = case.settings
    if any(spec.kind in WINDOWED for spec in case.model.cache_specs):
        smaller = (
            c for c in _CHUNKS if settings.max_num_seqs <= c < settings.max_num_batched_tokens
        )
        chunks = ((c, replace(settings, max_num_batched_tokens=c)) for c in smaller)
        yield from _first(
            case, "--max-num-batched-tokens", chunks, "prompts are read in more steps"
        )
    if settings.kv_cache_memory_bytes is None:
        fewer = ((n, replace(settings, max_num_seqs=n)) for n in _sequences(case))
        yield from _first(case, "--max-num-seqs", fewer, "fewer requests in one step")
        yield from _utilization(case)
    shared = denser(case)
    if shared is not None:
        yield shared
    yield from _fewer_bits(case)
    for ranks in _TENSOR_PARALLEL:
        wider = replace(settings, tensor_parallel_size=ranks)
        found = case.sized(wider) if ranks > settings.tensor_parallel_size else None
        if found and found.starts:
            gpus = wider.gpus
            more = case.gpus is None or gpus > case.gpus
            yield Remedy(
                flags=f"--tensor-parallel-size {ranks}" + (f" on {gpus} GPUs" if more else ""),
                costs=f"{gpus} GPUs",
                figures=found,
            )
            return


def _fewer_bits(case: Case) -> Iterator[Remedy]:
    """FP8 for K and V, for the weights, and for both where neither alone is enough."""
    settings = case.settings
    steps: list[tuple[str, str, dict[str, Any]]] = []
    if case.fp8 is not None and settings.kv_cache_dtype == "auto":
        cache = {
            "kv_cache_dtype": "fp8",
            "attention_backend": case.fp8.backend,
            "block_size": case.fp8.block_size,
            "sparse_format": case.fp8.sparse_format,
        }
        steps.append(("--kv-cache-dtype fp8", "precision of K and V", cache))
    if case.fp8_weights and settings.quantization is None:
        steps.append(("--quantization fp8", "precision of the weights", {"quantization": "fp8"}))
    enough = False
    for flags, costs, changed in steps:
        found = case.sized(replace(settings, **changed))
        if found:
            enough = enough or found.headroom
            yield Remedy(flags=flags, costs=costs, figures=found)
    if len(steps) > 1 and not enough:
        both = case.sized(replace(settings, **steps[0][2], **steps[1][2]))
        if both:
            yield Remedy(
                flags=" ".join(flags for flags, _, _ in steps),
                costs="precision of weights, K and V",
                figures=both,
            )


def _sequences(case: Case) -> tuple[int, ...]:
    """Fewer sequences that help: as many as there are state blocks, or less memory to profile."""
    blocks = case.figures.capacity.num_gpu_blocks
    tried = sorted({*_SEQUENCES, blocks}, reverse=True)
    return tuple(n for n in tried if 0 < n < case.settings.max_num_seqs)


def _first(
    case: Case, flag: str, tried: Iterable[tuple[int, InstanceSettings]], costs: str
) -> Iterator[Remedy]:
    """The largest value that leaves headroom, else the largest that starts."""
    found = [(value, case.sized(settings)) for value, settings in tried]
    started = [(value, figures) for value, figures in found if figures and figures.starts]
    safe = [(value, figures) for value, figures in started if figures.headroom]
    for value, figures in (safe or started)[:1]:
        yield Remedy(flags=f"{flag} {value}", costs=costs, figures=figures)


def _utilization(case: Case) -> Iterator[Remedy]:
    """The hundredth of the GPU's memory that adds what one request and the spare block lack."""
    budget, capacity = case.figures.budget, case.figures.capacity
    if budget is None:
        return
    short = capacity.request_bytes + capacity.bytes_per_block - capacity.available_bytes
    short += case.figures.may_miss_bytes
    total = int(budget.total.value)
    share = math.ceil((int(budget.requested.value) + short) * 100 / total) / 100
    free = (total - case.memory_used) / total
    if not case.settings.gpu_memory_utilization < share <= min(_MOST_UTILIZATION, free):
        return
    found = case.sized(replace(case.settings, gpu_memory_utilization=share))
    if found:
        yield Remedy(
            flags=f"--gpu-memory-utilization {share:g}",
            costs="room for what vLLM does not count",
            figures=found,
        )
