"""Activations, CUDA graphs and non-torch memory of one rank, from constants fitted to logs.

vLLM measures them with one forward pass of ``max_num_batched_tokens`` dummy tokens and one sampler
pass of ``max_num_seqs`` rows (vllm/v1/worker/gpu_worker.py#determine_available_memory,
vllm/v1/worker/gpu/model_runner.py#profile_run). The tensors of both are known from the code; how
many of them are alive at the peak is fitted (``profiles/memory/overheads.yaml``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from vllm_advisor.sizing.cuda_graphs import captured_sizes, cuda_graph_bytes
from vllm_advisor.sizing.overhead_shape import OverheadShape
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.speculation import Speculation
from vllm_advisor.units import ceil_div, round_up

_FP32 = 4
_MOE_CHUNK = 32_768
_VOCAB_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py#DEFAULT_VOCAB_...


class RankLink(StrEnum):
    """How the ranks of one instance are joined, as far as buffers outside of torch differ."""

    NONE = "none"  # one GPU
    PIPELINE = "pipeline"  # stages of one GPU each: no all-reduce
    PCIE = "pcie"
    NVLINK = "nvlink"
    UNIFIED = "unified"  # nodes whose GPU shares the host's memory


class _Settings(Protocol):
    """The engine arguments that decide it (see InstanceSettings)."""

    @property
    def max_num_seqs(self) -> int: ...
    @property
    def max_num_batched_tokens(self) -> int: ...
    @property
    def tensor_parallel_size(self) -> int: ...
    @property
    def pipeline_parallel_size(self) -> int: ...
    @property
    def data_parallel_size(self) -> int: ...
    @property
    def enable_expert_parallel(self) -> bool: ...
    @property
    def enforce_eager(self) -> bool: ...
    @property
    def speculation(self) -> Speculation | None: ...
    @property
    def num_speculative_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOverheads:
    """Bytes one rank takes beside weights and cache, and how many sizes it captures."""

    activations: int
    cuda_graphs: int
    non_torch: int
    captured_sizes: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.activations + self.cuda_graphs + self.non_torch


def rank_overheads(
    shape: OverheadShape, settings: _Settings, gpu: Accelerator, overheads: Overheads
) -> RankOverheads:
    """Everything beside weights and cache on the last pipeline stage."""
    experts = settings.enable_expert_parallel
    pipeline = settings.pipeline_parallel_size
    rows, tokens = settings.max_num_seqs, settings.max_num_batched_tokens
    sizes = captured_sizes(
        rows,
        tokens,
        gpu.capability,
        limit=shape.max_capture_size,
        num_speculative_tokens=settings.num_speculative_tokens,
    )
    sizes = 0 if settings.enforce_eager else sizes
    drafting = 0
    if settings.speculation is not None and settings.speculation.draft is not None:
        drafting = draft_buffer_bytes(settings.speculation, rows, tokens)
        drafted = len(settings.speculation.draft.kv_cache)
        shape = replace(shape, num_hidden_layers=shape.num_hidden_layers + drafted)
    link = rank_link(
        tensor_parallel_size=settings.tensor_parallel_size
        * (settings.data_parallel_size if experts else 1),
        pipeline_parallel_size=pipeline,
        nvlink=gpu.nvlink_bandwidth is not None,
        unified_memory=gpu.unified_memory,
    )
    return RankOverheads(
        activations=activation_bytes(
            shape,
            overheads,
            max_num_seqs=rows,
            max_num_batched_tokens=tokens,
            tensor_parallel_size=settings.tensor_parallel_size,
            pipeline_parallel_size=pipeline,
            data_parallel_size=settings.data_parallel_size,
            expert_parallel=experts,
        )
        + drafting,
        cuda_graphs=cuda_graph_bytes(
            shape, overheads, sizes=sizes, pipeline_parallel_size=pipeline
        ),
        non_torch=non_torch_bytes(shape, overheads, link=link, max_num_seqs=rows),
        captured_sizes=sizes,
    )


def logits_bytes(shape: OverheadShape, rows: int) -> int:
    """FP32 logits: rows x padded vocabulary x 4 B. Tensor parallelism gathers them whole."""
    return rows * round_up(shape.vocab_size, _VOCAB_PADDING) * _FP32


def hidden_bytes(shape: OverheadShape, tokens: int) -> int:
    """Hidden states: tokens x hidden_size x dtype, whole on every tensor-parallel rank."""
    return tokens * shape.hidden_size * shape.dtype_bytes


def mlp_bytes(shape: OverheadShape, tokens: int, tensor_parallel_size: int) -> int:
    """Gate, up and their product alive together in one dense MLP, split by TP.

    tokens x intermediate / TP x (3 x dtype, and one byte more where activations are quantized).
    """
    width = ceil_div(shape.intermediate_size, tensor_parallel_size)
    return tokens * width * (3 * shape.dtype_bytes + shape.eight_bit_activations)


def moe_workspace_bytes(
    shape: OverheadShape, tokens: int, tensor_parallel_size: int, *, expert_parallel: bool = False
) -> int:
    """Scratch of the experts, allocated once and kept.

    tokens x experts per token x (max(inter, hidden) + max(2 x inter, hidden)) x dtype, inter
    divided by TP unless experts are kept whole. Other kernels' scratch is taken for equal.
    ``tokens`` are those of all data-parallel engines. Source:
    vllm/model_executor/layers/fused_moe/experts/triton_moe.py#TritonExperts.workspace_shapes.
    """
    inter = shape.moe_intermediate_size
    if not expert_parallel:
        inter = ceil_div(inter, tensor_parallel_size)
    columns = max(inter, shape.hidden_size) + max(2 * inter, shape.hidden_size)
    return tokens * shape.num_experts_per_tok * columns * shape.dtype_bytes


def activation_bytes(
    shape: OverheadShape,
    overheads: Overheads,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    tensor_parallel_size: int = 1,
    pipeline_parallel_size: int = 1,
    data_parallel_size: int = 1,
    expert_parallel: bool = False,
) -> int:
    """Peak of vLLM's profile run on the last pipeline stage, with the experts' scratch.

    The larger of the sampler's pass (``logits_factor`` x logits + ``hidden_factor`` x hidden) and
    the widest layer (gate, up, product + ``forward_hidden_factor`` x hidden + sparse attention's
    scratch), and a constant, the experts' scratch, the encoder's outputs, and two hidden states
    between pipeline stages (make_empty_intermediate_tensors). Up to 0.16 the experts' scratch is
    freed with the layer and made for 32,768 tokens at once (VLLM_FUSED_MOE_CHUNK_SIZE).
    Data-parallel engines profile
    together, and the default all2all backend gathers the tokens of all of them before the experts
    (fused_moe/prepare_finalize/naive_dp_ep.py; since 0.17 in one piece).
    """
    tokens = max_num_batched_tokens
    hidden = hidden_bytes(shape, tokens)
    logits = logits_bytes(shape, min(max_num_seqs, tokens))
    sampler = overheads.logits_factor * logits + overheads.hidden_factor * hidden
    forward = overheads.forward_hidden_factor * hidden
    forward += mlp_bytes(shape, tokens, tensor_parallel_size)
    if shape.sparse_attention:
        forward += overheads.sparse_bytes_per_token * tokens
    kept = overheads.constant_bytes
    gathered = tokens * data_parallel_size
    if shape.num_experts and data_parallel_size > 1:
        forward += hidden_bytes(shape, gathered)
    if shape.num_experts:
        at_once = gathered if overheads.moe_workspace else min(gathered, _MOE_CHUNK)
        scratch = moe_workspace_bytes(
            shape, at_once, tensor_parallel_size, expert_parallel=expert_parallel
        )
        if overheads.moe_workspace:
            kept += scratch
        else:
            forward += scratch
    if shape.multimodal:
        kept += overheads.multimodal_bytes
    if pipeline_parallel_size > 1:
        kept += 2 * hidden
    return round(max(sampler, forward)) + kept


def draft_buffer_bytes(speculation: Speculation, rows: int, tokens: int) -> int:
    """What a draft keeps from the start: its hidden states and, where it samples, its logits.

    tokens x hidden_size x dtype, and rows x drafted tokens x vocabulary x dtype. Sources:
    vllm/v1/worker/gpu/spec_decode/target_dependent_ar/speculator.py,
    vllm/v1/worker/gpu/spec_decode/speculator.py#DraftModelSpeculator.
    """
    draft = speculation.draft
    if draft is None:
        return 0
    kept = tokens * draft.hidden_size
    if speculation.samples_drafts:
        kept += rows * speculation.num_speculative_tokens * draft.vocab_size
    return kept * draft.dtype_bytes


def rank_link(
    *,
    tensor_parallel_size: int,
    pipeline_parallel_size: int = 1,
    nvlink: bool,
    unified_memory: bool = False,
) -> RankLink:
    """The class of buffers outside of torch; all-reduce needs tensor-parallel ranks."""
    if tensor_parallel_size == 1:
        return RankLink.PIPELINE if pipeline_parallel_size > 1 else RankLink.NONE
    if unified_memory:
        return RankLink.UNIFIED
    return RankLink.NVLINK if nvlink else RankLink.PCIE


def non_torch_bytes(
    shape: OverheadShape, overheads: Overheads, *, link: RankLink, max_num_seqs: int
) -> int:
    """What stays beside weights after the profile run: CUDA modules, NCCL, all-reduce buffers.

    From 0.29 on with the sampler's penalty state, rows x vocabulary x (4 + 1/8) B
    (vllm/v1/worker/gpu/sample/penalties.py#PenaltiesState): logs count it as consumed.
    """
    buffers = {
        RankLink.NONE: overheads.non_torch_bytes,
        RankLink.PIPELINE: overheads.non_torch_pipeline_bytes,
        RankLink.PCIE: overheads.non_torch_pcie_bytes,
        RankLink.NVLINK: overheads.non_torch_nvlink_bytes,
        RankLink.UNIFIED: overheads.non_torch_unified_bytes,
    }[link]
    return buffers + round(overheads.sampler_state_factor * logits_bytes(shape, max_num_seqs))


def headroom_bytes(
    *,
    free_at_start: int,
    requested: int,
    activations: int,
    graphs_set_aside: int,
    graphs_actual: int,
    warm_up: int,
) -> int:
    """Memory left once the KV cache is allocated, graphs are captured and the sampler is warm.

    The cache takes requested - consumed - activations - graphs_set_aside of what was free, so
    free_at_start - requested + activations + graphs_set_aside stays for graphs and warm-up
    (vllm/v1/worker/gpu_worker.py#determine_available_memory, #compile_or_warm_up_model). Below
    zero the start runs out of memory after the cache was sized, in capture or sampler warm-up.

    ``free_at_start`` is the total less what is gone before vLLM loads weights; ``activations``
    may be 0 to ask whether it starts even if freed memory of the profile run cannot be used
    again; ``warm_up`` is :func:`logits_bytes` of ``max_num_seqs`` rows.
    """
    spare = free_at_start - requested + activations + graphs_set_aside
    return spare - graphs_actual - warm_up
