"""Bytes of weights one rank holds: quantized, padded, split and replicated as vLLM does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from vllm_advisor.sizing.allocator import unsplit_stage_bytes
from vllm_advisor.sizing.kv_cache import kv_heads_per_rank, stage_layers
from vllm_advisor.sizing.mxfp4 import BLACKWELL, HOPPER, bias_bytes, kept_scales
from vllm_advisor.sizing.offload import Offload, saved_bytes
from vllm_advisor.types.model import (
    ModelFacts,
    QuantizationFacts,
    Shard,
    WeightComponent,
    WeightKind,
)
from vllm_advisor.units import ceil_div, round_up

_VOCAB_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py#DEFAULT_VOCAB_PADDING
_MISMATCH = Fraction(5, 100)  # above this, computed and known weights are told apart aloud
_TOLERANCE = Fraction(1, 100)  # computed weights may exceed the known ones by this

ONLINE_FP8 = QuantizationFacts(method="fp8", bits=8)  # --quantization fp8 on 16-bit weights


# vllm/model_executor/layers/fused_moe/oracle/mxfp4.py: Hopper's Triton kernels take the model's
# own padding, Marlin and TRT-LLM these multiples of a rank's intermediate and of the hidden size.
_MXFP4_MULTIPLES = (128, 256)
_OF_EXPERT = 3  # matrices: gate, up, down
_SMALLEST_BLOCK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranks:
    """How the weights are spread; ``loaded`` with what kernels keep beside the parameters."""

    tp: int = 1
    beyond: int = 1
    expert_parallel: bool = False
    capability: int = 90
    redundant_experts: int = 0
    encoder_by_data: bool = False
    loaded: bool = True


_ONE = _Ranks(loaded=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Weights of the fullest rank, and how the computed sum compares with a known one.

    ``mismatch`` is (known - computed) / computed of the whole model, ``None`` without a known size.
    ``layer_experts`` are the bytes of one layer's experts on a rank.
    """

    rank_bytes: int
    total_bytes: int
    mismatch: float | None
    layer_experts: int = 0

    @property
    def doubtful(self) -> bool:
        """The known size is far from the computed one: the model is not what we think."""
        return self.mismatch is not None and abs(self.mismatch) > _MISMATCH


def weight_bytes(
    model: ModelFacts,
    *,
    tensor_parallel_size: int = 1,
    pipeline_parallel_size: int = 1,
    expert_parallel_ranks: int = 1,
    expert_parallel: bool = False,
    capability: int = 90,
    online_quantization: str | None = None,
    language_model_only: bool = False,
    redundant_experts: int = 0,
    tower_on_first_stage: bool = True,
    encoder_by_data: bool = False,
    offload: Offload | None = None,
    beside_last: int = 0,
    loaded: bool = True,
) -> WeightBytes:
    """Bytes of weights per rank on the fullest pipeline stage.

    A known checkpoint size is the ground truth for the whole. What it has beyond the computed
    text model of a multimodal one is its encoders, split over TP as vLLM's are, unless they were
    computed, too; a shortfall scales the computed rank.

    Args:
        model: the model.
        tensor_parallel_size: TP.
        pipeline_parallel_size: PP.
        expert_parallel_ranks: ranks the experts are spread over beyond TP: DP x PCP.
        expert_parallel: ranks hold whole experts (``--enable-expert-parallel``).
        capability: compute capability x 10; MXFP4 kernels pad differently.
        online_quantization: ``fp8`` to quantize 16-bit linear weights while loading.
        language_model_only: leave the vision tower out.
        redundant_experts: copies of experts that EPLB keeps beside them, in each layer.
        tower_on_first_stage: of the vLLM version; else every stage holds the tower.
        encoder_by_data: every rank holds its tower whole (``--mm-encoder-tp-mode data``).
        offload: what stays in CPU memory.
        beside_last: bytes that the last pipeline stage holds beside the model: its draft.
        loaded: as start-up logs count: with buffers, what kernels make of the parameters, and
            what the allocator rounds up.
    """
    online = ONLINE_FP8 if online_quantization is not None else None
    ranks = _Ranks(
        tp=tensor_parallel_size,
        beyond=expert_parallel_ranks,
        expert_parallel=expert_parallel,
        capability=capability,
        redundant_experts=redundant_experts,
        encoder_by_data=encoder_by_data,
        loaded=loaded,
    )

    def stage_bytes(layers: range, *, first: bool, last: bool) -> int:
        held: list[tuple[WeightComponent, int, int]] = []
        total = 0
        for part in model.weights.components:
            if part.kind is WeightKind.VISION and language_model_only:
                continue
            number = sum(1 for i in part.layers if i in layers) if part.layers else 1
            if part.shared:
                number = min(number, 1)
            everywhere = part.kind is WeightKind.VISION and not tower_on_first_stage
            if not (part.layers or everywhere or _on_stage(part, first=first, last=last)):
                continue
            weights, scales = _part_tensors(part, model, online, ranks)
            held.append((part, number, weights))
            total += number * (weights + scales)
        if offload is not None:
            total -= saved_bytes(
                model, offload, layers, lambda part: _part_bytes(part, model, online, ranks)
            )
        return total + (unsplit_stage_bytes(held) if loaded else 0)

    stages = stage_layers(model.num_hidden_layers, pipeline_parallel_size)
    ends = len(stages) - 1
    rank = max(
        stage_bytes(s, first=i == 0, last=i == ends) + (beside_last if i == ends else 0)
        for i, s in enumerate(stages)
    )
    computed = sum(
        _part_bytes(p, model, None, _ONE) * (len(p.layers) or 1) for p in model.weights.components
    )
    known = model.weights.checkpoint_bytes
    routed = [part for part in model.weights.components if part.experts and part.layers]
    first = min((part.layers[0] for part in routed), default=0)
    layer_experts = sum(_part_bytes(p, model, online, ranks) for p in routed if first in p.layers)
    if known is None:
        return WeightBytes(
            rank_bytes=rank, total_bytes=computed, mismatch=None, layer_experts=layer_experts
        )
    extra = known - computed
    tower_known = any(p.kind is WeightKind.VISION for p in model.weights.components)
    if extra >= 0 and model.multimodal and not tower_known:
        beyond = 0 if language_model_only else ceil_div(extra, ranks.tp)
        return WeightBytes(
            rank_bytes=rank + beyond,
            total_bytes=known,
            mismatch=0.0,
            layer_experts=layer_experts,
        )
    # More on disk than the model is what vLLM leaves unread (draft layers); a little less is the
    # padding and copies that vLLM adds. Much less is a model that is smaller than we think.
    if extra < -computed * _TOLERANCE:
        rank = rank * known // computed
    return WeightBytes(
        rank_bytes=rank,
        total_bytes=known,
        mismatch=extra / computed,
        layer_experts=layer_experts,
    )


def kind_bytes(
    model: ModelFacts,
    *,
    tensor_parallel_size: int = 1,
    expert_parallel_ranks: int = 1,
    expert_parallel: bool = False,
    capability: int = 90,
    online_quantization: str | None = None,
) -> dict[WeightKind, int]:
    """Bytes of each kind of weights on one tensor-parallel rank, all pipeline stages together.

    Arguments as of :func:`weight_bytes`.
    """
    ranks = _Ranks(
        tp=tensor_parallel_size,
        beyond=expert_parallel_ranks,
        expert_parallel=expert_parallel,
        capability=capability,
    )
    online = ONLINE_FP8 if online_quantization is not None else None
    found: dict[WeightKind, int] = {}
    for part in model.weights.components:
        if part.after_loading:
            continue
        size = _part_bytes(part, model, online, ranks) * (len(part.layers) or 1)
        found[part.kind] = found.get(part.kind, 0) + size
    return found


def _on_stage(part: WeightComponent, *, first: bool, last: bool) -> bool:
    return {"first": first, "last": last, "ends": first or last}.get(part.stages, True)


def _part_bytes(
    part: WeightComponent, model: ModelFacts, online: QuantizationFacts | None, ranks: _Ranks
) -> int:
    return sum(_part_tensors(part, model, online, ranks))


def _part_tensors(
    part: WeightComponent, model: ModelFacts, online: QuantizationFacts | None, ranks: _Ranks
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
    part: WeightComponent, ranks: _Ranks, other: int, *, method: str
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
