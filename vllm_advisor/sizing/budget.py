"""How the memory of the fullest rank is spent."""

from __future__ import annotations

import math

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.drafting import draft_weight_bytes, drafting_assumptions
from vllm_advisor.sizing.lora import lora_bytes
from vllm_advisor.sizing.measured_memory import calibrated, may_miss
from vllm_advisor.sizing.overhead import rank_overheads
from vllm_advisor.sizing.overhead_notes import overhead_assumptions
from vllm_advisor.sizing.overhead_shape import shape_of
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.weights import WeightBytes, weight_bytes
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import Figure, MemoryBudget
from vllm_advisor.types.source import Assumption, Confidence, Source, SourceKind
from vllm_advisor.units import format_bytes

_BY_LOG = "; corrected by what a log says"


def instance_weights(
    model: ModelFacts, settings: InstanceSettings, *, loaded: bool = True
) -> WeightBytes:
    """Weights of the fullest rank under these settings.

    Args:
        model: the model.
        settings: how it is served.
        loaded: that of ``weight_bytes``.
    """
    return weight_bytes(
        model,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        # Without expert parallelism, experts are cut by TP x DP x PCP (fused_moe/config.py).
        expert_parallel_ranks=settings.data_parallel_size * settings.prefill_context_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
        capability=settings.capability,
        online_quantization=settings.quantization,
        language_model_only=settings.language_model_only,
        redundant_experts=settings.redundant_experts,
        tower_on_first_stage=settings.tower_on_first_stage,
        encoder_by_data=settings.encoder_by_data,
        offload=settings.offload,
        beside_last=draft_weight_bytes(settings, loaded=loaded),
        loaded=loaded,
    )


def memory_budget(
    model: ModelFacts, settings: InstanceSettings, gpu: Accelerator, overheads: Overheads
) -> tuple[MemoryBudget, tuple[Assumption, ...], int]:
    """The budget of the fullest rank in bytes, what had to be assumed, and what it may miss by.

    requested = ceil(total x gpu_memory_utilization); what weights and overheads leave of it is the
    KV cache. With ``--kv-cache-memory-bytes`` the cache is given and the rest added up. What a log
    of the same server says (``overheads.measured``) is taken here, and nowhere else.

    Raises:
        InfeasibleError: the given cache does not fit beside the weights.
    """
    fitted = Source(SourceKind.MEASURED, overheads.source.partition(":")[2])
    formula = Source(SourceKind.FORMULA, "memory-budget")
    weights = instance_weights(model, settings)
    drafted = draft_weight_bytes(settings)
    adapters = 0
    if settings.max_loras:
        adapters = lora_bytes(
            model,
            max_loras=settings.max_loras,
            max_lora_rank=settings.max_lora_rank,
            tensor_parallel_size=settings.tensor_parallel_size,
        )
    # EPLB moves experts through a copy of one layer's (distributed/eplb/eplb_state.py#add_model).
    moved = weights.layer_experts if settings.eplb else 0
    multimodal = model.multimodal and not settings.language_model_only
    shape = shape_of(model, multimodal=multimodal, online_fp8=settings.quantization == "fp8")
    found = calibrated(
        rank_overheads(shape, settings, gpu, overheads), settings, overheads.measured
    )
    beside, logged = found.beside, found.sources
    weight_total = weights.rank_bytes + adapters + moved + found.weights
    spent = weight_total + beside.total
    given = settings.kv_cache_memory_bytes
    if not model.cache_specs:
        given = 0  # nothing is cached: vLLM profiles nothing and keeps no share
    requested = _requested(settings, gpu, spent, given)
    rows = min(settings.max_num_seqs, settings.max_num_batched_tokens)
    budget = MemoryBudget(
        total=_figure("total", gpu.memory_total, "CUDA total of one GPU", gpu.memory_total_source),
        requested=_figure(
            "requested",
            requested,
            f"ceil(total x {settings.gpu_memory_utilization:g})"
            if given is None
            else "weights + activations + cuda_graphs + non_torch"
            + (" + --kv-cache-memory-bytes" if given else ""),
            Source(SourceKind.VLLM, "0.33.0:vllm/v1/worker/utils.py#request_memory"),
            "memory.total",
        ),
        weights=_figure(
            "weights",
            weight_total,
            f"parameters of the fullest rank at TP {settings.tensor_parallel_size}, "
            f"PP {settings.pipeline_parallel_size}"
            + (f" + {format_bytes(adapters)} of LoRA buffers" if adapters else "")
            + (f" + {format_bytes(moved)} to move experts" if moved else "")
            + (f", with {format_bytes(drafted)} of the draft on the last stage" if drafted else "")
            + (_of_log(found.weights) if found.weights else ""),
            logged.get("weights", model.weights.source),
        ),
        activations=_figure(
            "activations",
            beside.activations,
            f"larger of {overheads.logits_factor:g} x logits of {rows} sequences and the widest "
            f"layer of {settings.max_num_batched_tokens} tokens; experts' scratch, constants"
            + (_BY_LOG if "activations" in logged else ""),
            logged.get("activations", fitted),
        ),
        cuda_graphs=_figure(
            "cuda_graphs",
            beside.cuda_graphs,
            f"{beside.captured_sizes} batch sizes" + (_BY_LOG if "cuda_graphs" in logged else ""),
            logged.get("cuda_graphs", fitted),
        ),
        non_torch=_figure(
            "non_torch",
            beside.non_torch,
            "CUDA, NCCL, sampler state" + (_BY_LOG if "non_torch" in logged else ""),
            logged.get("non_torch", fitted),
        ),
        kv_cache=_figure(
            "kv_cache",
            requested - spent,
            "requested - weights - activations - cuda_graphs - non_torch",
            formula,
            "memory.requested",
            "memory.weights",
            "memory.activations",
            "memory.cuda_graphs",
            "memory.non_torch",
        ),
    )
    rest = _notes(model, gpu, weights.mismatch, doubtful=weights.doubtful)
    # What is not there needs no fit either: no graphs with --enforce-eager.
    said = {*logged, *(() if beside.cuda_graphs else ("cuda_graphs",))} if logged else ()
    notes = overhead_assumptions(shape, overheads, said) + drafting_assumptions(settings)
    return budget, notes + found.notes + rest, may_miss(found, overheads)


def _of_log(difference: int) -> str:
    more = "more" if difference > 0 else "less"
    return f", {format_bytes(abs(difference))} {more} as a log says"


def _requested(settings: InstanceSettings, gpu: Accelerator, spent: int, given: int | None) -> int:
    """Bytes that vLLM takes: a share of the GPU, or ``given`` for the cache beside all else."""
    if given is None:
        return math.ceil(gpu.memory_total * settings.gpu_memory_utilization)
    if spent + given <= gpu.memory_total:
        return spent + given
    spends = (
        f"{format_bytes(spent)} of weights and overhead is more than {gpu.name} has "
        f"({format_bytes(gpu.memory_total)})"
    )
    if not given:
        raise InfeasibleError(
            spends,
            where="--gpu",
            fix="--max-num-batched-tokens lower, --tensor-parallel-size, or a larger GPU",
        )
    raise InfeasibleError(
        f"--kv-cache-memory-bytes {format_bytes(given)} beside {spends}",
        where="--kv-cache-memory-bytes",
        fix=f"{format_bytes(max(0, gpu.memory_total - spent))} at most",
    )


def _figure(name: str, value: int, text: str, source: Source, *inputs: str) -> Figure:
    return Figure(
        id=f"memory.{name}", value=value, unit="bytes", formula=text, inputs=inputs, source=source
    )


def _notes(
    model: ModelFacts, gpu: Accelerator, mismatch: float | None, *, doubtful: bool
) -> tuple[Assumption, ...]:
    notes: list[Assumption] = []
    if gpu.memory_total_source.kind is SourceKind.ASSUMED:
        notes.append(
            Assumption(
                id="cuda-total-from-nvml",
                text=f"the CUDA total of {gpu.name} is derived from its NVML total; no log of it "
                "was found",
            )
        )
    if gpu.unified_memory:
        notes.append(
            Assumption(
                id="unified-memory",
                text=f"{gpu.name} shares memory with the CPU; vLLM sees what is free",
                lowers_to=Confidence.LOW,
            )
        )
    if doubtful and mismatch is not None:
        notes.append(
            Assumption(
                id="weights-differ",
                text=f"the checkpoint of {model.model_id} is {mismatch:+.0%} against what its "
                "config implies; the checkpoint's size is taken",
                lowers_to=Confidence.LOW,
            )
        )
    return tuple(notes)
