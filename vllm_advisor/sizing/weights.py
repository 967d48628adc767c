"""Bytes of weights one rank holds: quantized, padded, split and replicated as vLLM does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from vllm_advisor.sizing.allocator import unsplit_stage_bytes
from vllm_advisor.sizing.kv_cache import stage_layers
from vllm_advisor.sizing.offload import Offload, saved_bytes
from vllm_advisor.sizing.part_bytes import Ranks, part_bytes, part_tensors
from vllm_advisor.types.model import (
    ModelFacts,
    QuantizationFacts,
    WeightComponent,
    WeightKind,
)
from vllm_advisor.units import ceil_div

_MISMATCH = Fraction(5, 100)  # above this, computed and known weights are told apart aloud
_TOLERANCE = Fraction(1, 100)  # computed weights may exceed the known ones by this

ONLINE_FP8 = QuantizationFacts(method="fp8", bits=8)  # --quantization fp8 on 16-bit weights

_ONE = Ranks(loaded=False)


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
    ranks = Ranks(
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
            weights, scales = part_tensors(part, model, online, ranks)
            held.append((part, number, weights))
            total += number * (weights + scales)
        if offload is not None:
            total -= saved_bytes(
                model, offload, layers, lambda part: part_bytes(part, model, online, ranks)
            )
        return total + (unsplit_stage_bytes(held) if loaded else 0)

    stages = stage_layers(model.num_hidden_layers, pipeline_parallel_size)
    ends = len(stages) - 1
    rank = max(
        stage_bytes(s, first=i == 0, last=i == ends) + (beside_last if i == ends else 0)
        for i, s in enumerate(stages)
    )
    computed = sum(
        part_bytes(p, model, None, _ONE) * (len(p.layers) or 1) for p in model.weights.components
    )
    known = model.weights.checkpoint_bytes
    routed = [part for part in model.weights.components if part.experts and part.layers]
    first = min((part.layers[0] for part in routed), default=0)
    layer_experts = sum(part_bytes(p, model, online, ranks) for p in routed if first in p.layers)
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
    ranks = Ranks(
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
        size = part_bytes(part, model, online, ranks) * (len(part.layers) or 1)
        found[part.kind] = found.get(part.kind, 0) + size
    return found


def _on_stage(part: WeightComponent, *, first: bool, last: bool) -> bool:
    return {"first": first, "last": last, "ends": first or last}.get(part.stages, True)
