"""What would make an instance fit: no rule, but what the KV rules advise.

Every remedy is sized again before it is named; none is a rule of thumb.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.instance import InstanceSettings, size_instance
from vllm_advisor.types.sizing import InstanceFigures, MemoryBudget

# vLLM's budget does not see what is allocated after its profile run; more than this leaves no room.
_MOST_UTILIZATION = 0.95
_SEQUENCES = (256, 128, 64, 32)
_TENSOR_PARALLEL = (2, 4, 8, 16)


def memory_remedies(subject: Subject) -> tuple[str, ...]:
    """Single flags, each with a value under which a request of max_model_len fits."""
    return tuple(_remedies(subject))


def _remedies(subject: Subject) -> Iterator[str]:
    settings, figures = subject.settings, subject.figures
    if settings is None or figures is None or subject.model is None:
        return
    if _fits(subject, cached := _fp8_cache(subject, settings)) and cached is not None:
        yield f"--kv-cache-dtype {cached.kv_cache_dtype}"
    if settings.kv_cache_memory_bytes is None:
        for sequences in _SEQUENCES:
            fewer = replace(settings, max_num_seqs=min(sequences, settings.max_num_seqs))
            if fewer != settings and _fits(subject, fewer):
                yield f"--max-num-seqs {sequences}"
                break
        share = _utilization(subject, figures)
        if share is not None and _fits(subject, replace(settings, gpu_memory_utilization=share)):
            yield f"--gpu-memory-utilization {share:g}"
    for ranks in _TENSOR_PARALLEL:
        wider = replace(settings, tensor_parallel_size=ranks)
        if ranks > settings.tensor_parallel_size and _fits(subject, wider):
            gpus = wider.ranks * wider.data_parallel_size
            more = subject.node is None or gpus > subject.node.total_gpus
            yield f"--tensor-parallel-size {ranks}" + (f" on {gpus} GPUs" if more else "")
            break


def _fits(subject: Subject, settings: InstanceSettings | None) -> bool:
    if settings is None or subject.model is None:
        return False
    gpu = subject.node.accelerator if subject.node else None
    version = subject.engine.version_used or subject.engine.version
    try:
        figures = size_instance(
            subject.model, settings, accelerator=gpu, overheads=load_overheads(version)
        )
    except AdvisorError:
        return False
    return figures.capacity.fits


def _fp8_cache(subject: Subject, settings: InstanceSettings) -> InstanceSettings | None:
    """The settings with an FP8 cache, where the GPU takes one and the model has none yet."""
    model, node = subject.model, subject.node
    if model is None or node is None or settings.kv_cache_dtype != "auto":
        return None
    if model.quantization and model.quantization.kv_cache_dtype:
        return None
    gpu = node.accelerator
    try:
        choice = attention_choice(model, gpu.capability, gpu.name, "fp8")
    except AdvisorError:
        return None
    return replace(
        settings,
        kv_cache_dtype="fp8",
        attention_backend=choice.backend,
        block_size=choice.block_size,
    )


def _utilization(subject: Subject, figures: InstanceFigures) -> float | None:
    """The hundredth of the GPU's memory that adds what one request and the spare block lack."""
    budget: MemoryBudget | None = figures.budget
    if budget is None or subject.node is None:
        return None
    capacity = figures.capacity
    short = capacity.request_bytes + capacity.bytes_per_block - capacity.available_bytes
    total = int(budget.total.value)
    share = math.ceil((int(budget.requested.value) + short) * 100 / total) / 100
    free = (total - subject.node.memory_used) / total
    return share if share <= min(_MOST_UTILIZATION, free) else None
