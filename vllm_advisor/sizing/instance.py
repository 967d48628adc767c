"""One instance: budget of the fullest rank and capacity of its KV cache, from settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.kv_cache import KVCacheSettings
from vllm_advisor.sizing.lora import lora_bytes
from vllm_advisor.sizing.overhead import (
    activation_bytes,
    captured_sizes,
    cuda_graph_bytes,
    non_torch_bytes,
)
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import Figure, InstanceFigures, MemoryBudget
from vllm_advisor.types.source import Assumption, Confidence, Source, SourceKind
from vllm_advisor.units import GIB, format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """The engine arguments that change memory, resolved: nothing here is ``None`` by default."""

    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    gpu_memory_utilization: float
    block_size: int
    attention_backend: str
    kv_cache_dtype: str = "auto"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    quantization: str | None = None  # online quantization of 16-bit weights
    language_model_only: bool = False
    enforce_eager: bool = False
    hybrid_manager: bool = True
    async_scheduling: bool = True
    max_loras: int = 0  # 0: LoRA is off
    max_lora_rank: int = 16
    kv_cache_memory_bytes: int | None = None
    max_position_embeddings: int | None = None  # from --hf-overrides

    @property
    def ranks(self) -> int:
        """GPUs of one replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def in_flight_tokens(self) -> int:
        """Tokens scheduled and not yet settled (vllm/config/vllm.py#max_concurrent_batches)."""
        pipeline = self.pipeline_parallel_size
        if self.async_scheduling:
            return (pipeline + 1) * self.max_num_batched_tokens
        return pipeline * self.max_num_batched_tokens


def cache_layout(model: ModelFacts, settings: InstanceSettings) -> CacheLayout:
    """The KV cache groups of a model under these settings."""
    cache_dtype = settings.kv_cache_dtype
    declared = model.quantization.kv_cache_dtype if model.quantization else None
    if cache_dtype == "auto" and declared:
        cache_dtype = declared  # vllm/utils/torch_utils.py: auto takes what the checkpoint declares
    return CacheLayout(
        model.kv_cache,
        KVCacheSettings(
            cache_dtype=cache_dtype,
            model_dtype_bytes=model.dtype_bytes,
            block_size=settings.block_size,
            max_model_len=settings.max_model_len,
            in_flight_tokens=settings.in_flight_tokens,
            tensor_parallel_size=settings.tensor_parallel_size,
            pipeline_parallel_size=settings.pipeline_parallel_size,
            decode_context_parallel_size=settings.decode_context_parallel_size,
            hybrid_manager=settings.hybrid_manager,
        ),
    )


def size_instance(
    model: ModelFacts,
    settings: InstanceSettings,
    *,
    accelerator: Accelerator | None,
    overheads: Overheads,
    layout: CacheLayout | None = None,
) -> InstanceFigures:
    """Budget and capacity of one instance.

    Args:
        model: the model.
        settings: resolved engine arguments.
        accelerator: the GPU; may be ``None`` when ``kv_cache_memory_bytes`` is set.
        overheads: constants of the vLLM version.
        layout: a layout built before for the same settings.

    Raises:
        InfeasibleError: vLLM refuses the parallel sizes.
        InputError: neither a GPU nor ``kv_cache_memory_bytes`` is given.
    """
    check_parallelism(
        model,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        decode_context_parallel_size=settings.decode_context_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
    )
    layout = layout or cache_layout(model, settings)
    derived = settings.max_position_embeddings or derived_max_model_len(model)
    budget, notes = None, model.assumptions
    available = settings.kv_cache_memory_bytes
    if accelerator is not None:
        budget, budget_notes = _budget(model, settings, accelerator, overheads)
        notes += budget_notes
        available = int(budget.kv_cache.value)
    if available is None:
        raise InputError(
            "the memory of the GPU is not known",
            where="--gpu",
            fix="name a GPU (--gpu h100-sxm) or give --kv-cache-memory-bytes",
        )
    return InstanceFigures(
        budget=budget,
        capacity=layout.capacity(available, longest_asked=derived),
        derived_max_model_len=derived,
        attention_backend=settings.attention_backend,
        assumptions=notes,
    )


def _budget(
    model: ModelFacts, settings: InstanceSettings, gpu: Accelerator, overheads: Overheads
) -> tuple[MemoryBudget, tuple[Assumption, ...]]:
    measured = Source(SourceKind.MEASURED, overheads.source.partition(":")[2])
    formula = Source(SourceKind.FORMULA, "memory-budget")
    requested = math.ceil(gpu.memory_total * settings.gpu_memory_utilization)
    expert_ranks = settings.data_parallel_size if settings.enable_expert_parallel else 1
    weights = weight_bytes(
        model,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        expert_parallel_ranks=expert_ranks,
        online_quantization=settings.quantization,
        language_model_only=settings.language_model_only,
    )
    adapters = 0
    if settings.max_loras:
        adapters = lora_bytes(
            model,
            max_loras=settings.max_loras,
            max_lora_rank=settings.max_lora_rank,
            tensor_parallel_size=settings.tensor_parallel_size,
        )
    weight_total = weights.rank_bytes + adapters
    multimodal = model.multimodal and not settings.language_model_only
    activations = activation_bytes(
        model,
        overheads,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        multimodal=multimodal,
    )
    sizes = captured_sizes(settings.max_num_seqs, settings.max_num_batched_tokens, gpu.capability)
    graphs = 0 if settings.enforce_eager else cuda_graph_bytes(model, overheads, sizes=sizes)
    other = non_torch_bytes(overheads, ranks=settings.ranks * settings.data_parallel_size)
    spent = weight_total + activations + graphs + other
    given = settings.kv_cache_memory_bytes
    left = requested - spent if given is None else given
    if given is not None:
        requested = spent + given  # vLLM takes the bytes as given, whatever the utilisation
        if requested > gpu.memory_total:
            raise InfeasibleError(
                f"--kv-cache-memory-bytes {format_bytes(given)} beside {format_bytes(spent)} of "
                f"weights and overhead is more than {gpu.name} has "
                f"({format_bytes(gpu.memory_total)})",
                where="--kv-cache-memory-bytes",
                fix=f"{format_bytes(max(0, gpu.memory_total - spent))} at most",
            )

    def figure(name: str, value: int, text: str, source: Source, *inputs: str) -> Figure:
        return Figure(
            id=f"memory.{name}",
            value=value,
            unit="bytes",
            formula=text,
            inputs=inputs,
            source=source,
        )

    rows = min(settings.max_num_seqs, settings.max_num_batched_tokens)
    budget = MemoryBudget(
        total=figure("total", gpu.memory_total, "CUDA total of one GPU", gpu.memory_total_source),
        requested=figure(
            "requested",
            requested,
            f"ceil(total x {settings.gpu_memory_utilization:g})"
            if given is None
            else "weights + activations + cuda_graphs + non_torch + --kv-cache-memory-bytes",
            Source(SourceKind.VLLM, "0.33.0:vllm/v1/worker/utils.py#request_memory"),
            "memory.total",
        ),
        weights=figure(
            "weights",
            weight_total,
            f"parameters of the fullest rank at TP {settings.tensor_parallel_size}, "
            f"PP {settings.pipeline_parallel_size}"
            + (f" + {format_bytes(adapters)} of LoRA buffers" if adapters else ""),
            model.weights.source,
        ),
        activations=figure(
            "activations",
            activations,
            f"{overheads.logits_factor:g} x {rows} rows x {model.vocab_size} vocabulary x 4 B + "
            f"{overheads.hidden_factor:g} x {settings.max_num_batched_tokens} tokens x "
            f"{model.hidden_size} hidden x 2 B + constants",
            measured,
        ),
        cuda_graphs=figure("cuda_graphs", graphs, f"{sizes} captured batch sizes", measured),
        non_torch=figure("non_torch", other, "CUDA, NCCL and all-reduce buffers", measured),
        kv_cache=figure(
            "kv_cache",
            left,
            "requested - weights - activations - cuda_graphs - non_torch",
            formula,
            "memory.requested",
            "memory.weights",
            "memory.activations",
            "memory.cuda_graphs",
            "memory.non_torch",
        ),
    )
    return budget, _notes(model, gpu, overheads, weights.mismatch, doubtful=weights.doubtful)


def _notes(
    model: ModelFacts,
    gpu: Accelerator,
    overheads: Overheads,
    mismatch: float | None,
    *,
    doubtful: bool,
) -> tuple[Assumption, ...]:
    notes = [
        Assumption(
            id="overheads-fitted",
            text=f"activations, CUDA graphs and non-torch memory are fitted to {overheads.sample} "
            f"start-up logs of vLLM {overheads.versions} (largest miss "
            f"{overheads.error_bytes / GIB:.1f} GiB); vLLM measures them at start-up",
        )
    ]
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


def shared_prefix_blocks(layout: CacheLayout, tokens: int) -> int:
    """Blocks of a shared prefix that prefix caching holds once for all requests.

    Only whole blocks are shared (vllm/v1/core/block_pool.py), and only where every block stays:
    windowed layers are counted in full for each request.
    """
    return sum(tokens // g.page.block_size for g in layout.groups if g.page.window is None)
