"""Activations, CUDA graphs and non-torch memory of one rank, from constants fitted to logs."""

from __future__ import annotations

from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.model import ModelFacts


def activation_bytes(
    model: ModelFacts,
    overheads: Overheads,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    multimodal: bool,
) -> int:
    """Peak of vLLM's profile run: mostly the sampler's FP32 logits (see :class:`Overheads`)."""
    rows = min(max_num_seqs, max_num_batched_tokens)
    logits = overheads.logits_factor * rows * model.vocab_size * 4
    hidden = overheads.hidden_factor * max_num_batched_tokens * model.hidden_size * 2
    extra = overheads.moe_bytes if model.num_experts else 0
    extra += overheads.multimodal_bytes if multimodal else 0
    return round(logits + hidden) + overheads.constant_bytes + extra


def captured_sizes(max_num_seqs: int, max_num_batched_tokens: int, capability: int) -> int:
    """How many batch sizes vLLM captures as CUDA graphs.

    1, 2, 4, then every 8 below 256 and every 16 from there, up to min(2 x max_num_seqs, 512; 1024
    on compute capability 10.x), capped by max_num_batched_tokens. Source:
    vllm/config/vllm.py#_set_cudagraph_sizes.
    """
    ceiling = 1024 if 100 <= capability < 110 else 512
    largest = min(2 * max_num_seqs, ceiling, max_num_batched_tokens)
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)]
    return sum(1 for size in sizes if size <= largest)


def cuda_graph_bytes(model: ModelFacts, overheads: Overheads, *, sizes: int) -> int:
    """Graph memory vLLM sets aside before the KV cache (see :class:`Overheads`)."""
    if not overheads.graphs_set_aside:
        return 0
    full = overheads.graph_base_bytes + overheads.graph_layer_bytes * model.num_hidden_layers
    full += overheads.graph_moe_bytes if model.num_experts else 0
    return full * sizes // overheads.graph_reference_sizes


def non_torch_bytes(overheads: Overheads, *, ranks: int) -> int:
    """CUDA context growth, NCCL and all-reduce buffers."""
    return overheads.non_torch_parallel_bytes if ranks > 1 else overheads.non_torch_bytes
