"""Whether the GPU's free memory is enough at the two moments the budget does not look at."""

from __future__ import annotations

from vllm_advisor.knowledge.overheads import memory_before_start
from vllm_advisor.sizing.cuda_graphs import graph_actual_bytes
from vllm_advisor.sizing.measured_memory import logged_before_start
from vllm_advisor.sizing.overhead import headroom_bytes, logits_bytes, rank_overheads
from vllm_advisor.sizing.overhead_shape import shape_of
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import MemoryBudget
from vllm_advisor.types.source import Assumption, Confidence
from vllm_advisor.units import format_bytes

SHORT_AT_START = "free-memory-at-start"
SHORT_AFTER_START = "free-memory-after-start"


def start_notes(
    model: ModelFacts,
    settings: InstanceSettings,
    budget: MemoryBudget | None,
    accelerator: Accelerator | None,
    overheads: Overheads,
) -> tuple[Assumption, ...]:
    """What may stop a start although the budget closes; empty when there is room.

    Before it loads weights, vLLM asks whether the share it wants is free at all
    (vllm/v1/worker/utils.py#request_memory); once the cache is allocated, CUDA graphs and the
    sampler take what is left (vllm/v1/worker/gpu_worker.py#compile_or_warm_up_model).
    """
    if budget is None or accelerator is None or settings.kv_cache_memory_bytes is not None:
        return ()
    gone, known = _gone(settings, accelerator, overheads)
    free = accelerator.memory_total - gone
    requested = int(budget.requested.value)
    if requested > free:
        return (
            Assumption(
                id=SHORT_AT_START,
                text=f"vLLM asks for {format_bytes(requested)} and about {format_bytes(free)} are "
                f"free when it starts ({known}): it may refuse with 'Free memory on device ... is "
                "less than desired GPU memory utilization'",
                lowers_to=Confidence.LOW,
            ),
        )
    multimodal = model.multimodal and not settings.language_model_only
    shape = shape_of(model, multimodal=multimodal, online_fp8=settings.quantization == "fp8")
    sizes = rank_overheads(shape, settings, accelerator, overheads).captured_sizes
    captured = graph_actual_bytes(
        shape, overheads, sizes=sizes, pipeline_parallel_size=settings.pipeline_parallel_size
    )
    logged = overheads.measured.terms.get("cuda_graphs") if overheads.measured else None
    if logged is not None:
        captured = logged.scaled(captured)  # as its estimate is off, so is what it estimates
    left = headroom_bytes(
        free_at_start=free,
        requested=requested,
        activations=int(budget.activations.value),
        graphs_set_aside=int(budget.cuda_graphs.value),
        graphs_actual=captured,
        warm_up=logits_bytes(shape, _verified_rows(settings)),
    )
    if left >= 0:
        return ()
    return (
        Assumption(
            id=SHORT_AFTER_START,
            text=f"once the KV cache is allocated, CUDA graphs and the sampler need about "
            f"{format_bytes(-left)} more than is left of the GPU ({known}): it may run out of "
            "memory while it starts",
            lowers_to=Confidence.LOW,
        ),
    )


def _gone(
    settings: InstanceSettings, accelerator: Accelerator, overheads: Overheads
) -> tuple[int, str]:
    """Bytes that are gone before weights are loaded, and which logs say so."""
    joined = settings.tensor_parallel_size > 1
    usual = memory_before_start(
        accelerator.id, tensor_parallel=joined, unified_memory=accelerator.unified_memory
    )
    moved = logged_before_start(overheads.measured, tensor_parallel=joined)
    if moved and overheads.measured:
        return usual.size_bytes + moved, f"by {overheads.measured.file}"
    known = f"by {usual.logs} start-up logs" if usual.logs else "by logs of other GPUs"
    return usual.size_bytes, known


def _verified_rows(settings: InstanceSettings) -> int:
    """Rows of logits in the warm-up: with speculative decoding, all tokens that are verified.

    Its prompts are one token longer than that (vllm/v1/worker/gpu/warmup.py).
    """
    drafted = settings.num_speculative_tokens
    if not drafted:
        return settings.max_num_seqs
    requests = min(settings.max_num_seqs, settings.max_num_batched_tokens // (drafted + 2))
    return requests * (1 + drafted)
