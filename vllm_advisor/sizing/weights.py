"""Bytes of weights one rank holds: quantized, padded, split and replicated as vLLM does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from vllm_advisor.sizing.kv_cache import kv_heads_per_rank, stage_layers
from vllm_advisor.types.model import (
    ModelFacts,
    QuantizationFacts,
    Shard,
    WeightComponent,
)
from vllm_advisor.units import ceil_div, round_up

_VOCAB_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py#DEFAULT_VOCAB_PADDING
_MISMATCH = Fraction(5, 100)  # above this, computed and known weights are told apart aloud

ONLINE_FP8 = QuantizationFacts(method="fp8", bits=8)  # --quantization fp8 on 16-bit weights


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Weights of the fullest rank, and how the computed sum compares with a known one.

    ``mismatch`` is (known - computed) / computed of the whole model, ``None`` without a known size.
    """

    rank_bytes: int
    total_bytes: int
    mismatch: float | None

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
    online_quantization: str | None = None,
    language_model_only: bool = False,
) -> WeightBytes:
    """Bytes of weights per rank on the fullest pipeline stage.

    A known checkpoint size is the ground truth for the whole. What it has beyond the text model
    (a vision tower, projectors) is split over TP, as vLLM's encoders are; a shortfall scales the
    computed rank.

    Args:
        model: the model.
        tensor_parallel_size: TP.
        pipeline_parallel_size: PP.
        expert_parallel_ranks: ranks the experts are spread over beyond TP (DP with EP), else 1.
        online_quantization: ``fp8`` to quantize 16-bit linear weights while loading.
        language_model_only: leave the vision tower out.
    """
    quantization = model.quantization
    if online_quantization is not None and quantization is None:
        quantization = ONLINE_FP8
    tp = tensor_parallel_size

    def stage_bytes(layers: range, *, first: bool, last: bool) -> int:
        total = 0
        for part in model.weights.components:
            number = sum(1 for i in part.layers if i in layers) if part.layers else 1
            if not part.layers and not _on_stage(part, first=first, last=last):
                continue
            total += number * _part_bytes(part, model, quantization, tp, expert_parallel_ranks)
        return total

    stages = stage_layers(model.num_hidden_layers, pipeline_parallel_size)
    ends = len(stages) - 1
    rank = max(stage_bytes(s, first=i == 0, last=i == ends) for i, s in enumerate(stages))
    computed = sum(
        _part_bytes(p, model, model.quantization, 1, 1) * (len(p.layers) or 1)
        for p in model.weights.components
        if p.name != "mla_absorbed"
    )
    known = model.weights.checkpoint_bytes
    if known is None:
        return WeightBytes(rank_bytes=rank, total_bytes=computed, mismatch=None)
    extra = known - computed
    if extra >= 0:
        beyond = ceil_div(extra, tp) if model.multimodal and not language_model_only else 0
        mismatch = 0.0 if model.multimodal else extra / computed
        return WeightBytes(rank_bytes=rank + beyond, total_bytes=known, mismatch=mismatch)
    scaled = rank * known // computed
    return WeightBytes(rank_bytes=scaled, total_bytes=known, mismatch=extra / computed)


def _on_stage(part: WeightComponent, *, first: bool, last: bool) -> bool:
    return {"first": first, "last": last, "ends": first or last}.get(part.stages, True)


def _part_bytes(
    part: WeightComponent,
    model: ModelFacts,
    quantization: QuantizationFacts | None,
    tp: int,
    ep: int,
) -> int:
    params = part.params
    if part.shard is Shard.VOCAB:
        width = params // part.rows
        params = round_up(round_up(part.rows, _VOCAB_PADDING), tp) // tp * width
    elif part.shard is Shard.SPLIT:
        params = ceil_div(params, tp)
    elif part.shard is Shard.EXPERTS:
        params = ceil_div(params, tp * ep)
        if part.split_multiple > 1 and ep == 1:
            share = ceil_div(part.split_size, tp)
            params = params * round_up(share, part.split_multiple) // share
    elif part.shard is Shard.KV_HEADS:
        params = params // model.num_key_value_heads
        params *= kv_heads_per_rank(model.num_key_value_heads, tp)
    if quantization is None or not part.linear or part.kind in quantization.unquantized:
        return params * (part.dtype_bytes or model.dtype_bytes)
    bits = Fraction(quantization.bits) + Fraction(quantization.scale_bits).limit_denominator(10**6)
    return int(params * bits / 8)
