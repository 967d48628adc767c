"""Bytes of one part of the weights on one rank: quantized, padded and split as vLLM does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from vllm_advisor.sizing.kv_cache import kv_heads_per_rank
from vllm_advisor.sizing.mxfp4 import BLACKWELL, HOPPER, bias_bytes, kept_scales
from vllm_advisor.types.model import (
    ModelFacts,
    QuantizationFacts,
    Shard,
    WeightComponent,
    WeightKind,
)
from vllm_advisor.units import ceil_div, round_up

_VOCAB_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py#DEFAULT_VOCAB_PADDING

# vllm/model_executor/layers/fused_moe/oracle/mxfp4.py: Hopper's Triton kernels take the model's
# own padding, Marlin and TRT-LLM these multiples of a rank's intermediate and of the hidden size.
_MXFP4_MULTIPLES = (128, 256)
_OF_EXPERT = 3  # matrices: gate, up, down
_SMALLEST_BLOCK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How the weights are spread; ``loaded`` with what kernels keep beside the parameters.

    ``tp`` ranks split each engine, ``beyond`` times as many share the experts.
    """

    tp: int = 1
    beyond: int = 1
    expert_parallel: bool = False
    capability: int = 90
    redundant_experts: int = 0
    encoder_by_data: bool = False
    loaded: bool = True


def part_bytes(
    part: WeightComponent, model: ModelFacts, online: QuantizationFacts | None, ranks: Ranks
) -> int:
    """Bytes of one part on one rank, scales included."""
    return sum(part_tensors(part, model, online, ranks))


def part_tensors(
    part: WeightComponent, model: ModelFacts, online: QuantizationFacts | None, ranks: Ranks
) -> tuple[int, int]:
    """Bytes of the weights of one part on one rank, and of their scales."""
    if part.after_loading and not ranks.loaded:
        return 0, 0
    if part.shard is Shard.EXPERT_MAP:
        experts = part.params + ranks.redundant_experts if ranks.expert_parallel else 0
        return experts * (part.dtype_bytes or model.dtype_bytes), 0
    share, matrices, other = part.split_size, part.matrices, 1
    if part.matrices and part.split_size:
        other = part.params // (part.matrices * part.split_size)
    params = part.params
    if part.shard is Shard.VOCAB:
        width = params // part.rows
        params = round_up(round_up(part.rows, _VOCAB_PADDING), ranks.tp) // ranks.tp * width
    elif part.kind is WeightKind.VISION and (
        share % ranks.tp or (ranks.encoder_by_data and part.whole_by_data)
    ):
        pass  # a tower whose heads TP does not divide is whole on every rank
    elif part.shard is Shard.SPLIT:
        params, share = ceil_div(params, ranks.tp), ceil_div(share, ranks.tp)
        if part.split_multiple > 1:
            share = round_up(share, part.split_multiple)
            params = part.params // part.split_size * share
    elif part.shard in (Shard.EXPERTS, Shard.EXPERTS_WHOLE):
        stored = part.quantization or model.quantization
        left = part.kind is WeightKind.EXPERTS and not part.linear  # in 16 bits by the checkpoint
        method = stored.method if stored and not left else ""
        params, share, matrices, other = _experts(part, ranks, other, method=method)
    elif part.shard is Shard.KV_HEADS:
        heads = part.kv_heads or model.num_key_value_heads
        held = kv_heads_per_rank(heads, ranks.tp)
        params, share = params // heads * held, share // heads * held
    quantization = part.quantization or model.quantization or online
    kept = part.quantization is None and quantization and part.kind in quantization.unquantized
    routed = part.shard in (Shard.EXPERTS, Shard.EXPERTS_WHOLE)
    converted = ranks.loaded and routed and part.split_multiple > 1  # gpt-oss alone
    if quantization is None or not part.linear or kept:
        size = part.dtype_bytes or model.dtype_bytes
        return params * (bias_bytes(ranks.capability, size) if converted else size), 0
    weights, scales = _quantized_bytes(quantization, params, matrices, share, other, experts=routed)
    if converted:
        scales += kept_scales(ranks.capability, matrices // _OF_EXPERT, share, other)
    return weights, scales


def _experts(
    part: WeightComponent, ranks: Ranks, other: int, *, method: str
) -> tuple[int, int, int, int]:
    """Parameters of one rank: whole experts, or a padded share of each."""
    spread = ranks.tp * ranks.beyond
    if ranks.expert_parallel:
        experts = part.experts or 1
        held = ceil_div(experts + ranks.redundant_experts, spread)
        share, matrices = part.split_size, part.matrices // experts * held
        params = part.params // experts * held if part.experts else ceil_div(part.params, spread)
    elif part.shard is Shard.EXPERTS_WHOLE:
        share, matrices, params = part.split_size, part.matrices, part.params
    else:
        share, matrices = ceil_div(part.split_size, spread), part.matrices
        params = ceil_div(part.params, spread)
    if part.split_multiple > 1 and matrices:
        of_share, of_other = (
            _MXFP4_MULTIPLES
            if method == "mxfp4" and ranks.capability not in HOPPER
            else (part.split_multiple, 1)
        )
        # A bias has but one of the two dimensions.
        share = round_up(share, of_share) if share > 1 else share
        other = round_up(other, of_other) if other > 1 else other
        params = matrices * share * other
    elif not method and ranks.capability in BLACKWELL and matrices:
        padded = round_up(share, part.blackwell_multiple)
        params += matrices * (padded - share) * other
        share = padded
    return params, share, matrices, other


def _quantized_bytes(
    quantization: QuantizationFacts,
    params: int,
    matrices: int,
    share: int,
    other: int,
    *,
    experts: bool,
) -> tuple[int, int]:
    scale = Fraction(quantization.scale_bits).limit_denominator(10**6)
    if quantization.weight_block and matrices:
        rows, columns = quantization.weight_block
        bits = rows * columns * scale
        if experts and (share % rows or share % columns):
            # Experts that cut through blocks get smaller ones (fused_moe/oracle/fp8.py).
            rows = columns = max(math.gcd(rows, columns, share, other), _SMALLEST_BLOCK)
        blocks = matrices * ceil_div(share, rows) * ceil_div(other, columns)
        return params * quantization.bits // 8, int(blocks * bits / 8)
    weights = params * quantization.bits // 8
    return weights, int(params * (quantization.bits + scale) / 8) - weights
