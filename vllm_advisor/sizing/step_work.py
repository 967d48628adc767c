"""What one step of an instance has to read and to compute on one rank, from the model's facts.

Rates and efficiencies are not part of it: :mod:`~vllm_advisor.sizing.step_time` makes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.attention_cost import active_parameters
from vllm_advisor.sizing.cache_dtype import head_bytes, latent_bytes
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import kv_heads_per_rank, state_bytes
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.weights import ONLINE_FP8, kind_bytes
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    ModelFacts,
    QuantizationFacts,
    Shard,
    WeightKind,
)

_DENSE = (WeightKind.ATTENTION, WeightKind.MLP)
_FP8_BITS, _FOUR_BITS = 8, 4
_ADA, _HOPPER, _BLACKWELL = 89, 90, 100  # compute capability x 10
_FLOAT_FOUR_BITS = ("mxfp4", "modelopt", "modelopt_fp4", "modelopt_mixed")
_NVFP4_SCALE_BITS = 8 / 16
_SPARSE_TOP_K = 2048  # tokens that DeepSeek's sparse attention reads of the whole context


class WeightFormat(StrEnum):
    """Kinds of kernels that the weights of experts, or of the dense layers, need."""

    PLAIN = "plain"  # 16 or 8 bits
    FP4 = "fp4"  # computed in four bits, or in eight against four
    INT4 = "int4"  # integers, or FP4 where the GPU has none: computed in 16 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReads:
    """Bytes a sequence's layers read per token of context, as far back as they look."""

    window: int | None
    bytes_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """One rank's share of the work; a pipeline's stages are added up.

    Bytes are read once per step, flops are for each token. ``expert_*`` are zero in a dense model.
    ``dense_flops`` are (flops, peak) pairs, since parts may be computed in different precision.
    """

    weight_bytes: int  # of dense layers and the output head
    expert_bytes: int  # of all experts there are on the rank
    dense_format: WeightFormat
    expert_format: WeightFormat
    experts: int
    experts_per_token: int
    dense_seconds: float  # of one token at the GPU's peaks
    head_seconds: float  # of one token whose logits are computed, at the peak
    expert_seconds: float  # of one token at the peak, over all ranks that share the experts
    cache: tuple[CacheReads, ...]
    state_bytes: int  # of recurrent layers, per sequence
    attention_flops: float  # of one pair of tokens, over all full-attention layers
    window_flops: tuple[tuple[int, float], ...]  # (window, flops of one pair)
    decode_flops: float  # of one pair, where decoding computes more than it reads: latent attention
    layers: int
    expert_layers: int
    reduced_bytes: int  # of one token, in one all-reduce
    reduces: int  # all-reduces of one step
    ranks: int  # that take part in them
    engines: int  # data-parallel ones, that share the experts
    bandwidth: float  # bytes per second
    link: float  # bytes per second, one direction
    nvlink: bool
    blackwell: bool
    peak: float  # flops per second of 16-bit attention


def step_work(
    model: ModelFacts, settings: InstanceSettings, gpu: Accelerator, layout: CacheLayout
) -> StepWork:
    """Collect it.

    Raises:
        NotModelledError: the peak or the bandwidth of the GPU is not known, or the model has layers
            whose work cannot be told.
    """
    if gpu.bf16_flops is None or gpu.memory_bandwidth is None:
        raise NotModelledError(
            f"the arithmetic peak of {gpu.name} is not recorded, so nothing can be said of its "
            "speed",
            where="--gpu",
            fix="measure it with `vllm bench serve`, or name another GPU",
        )
    tp, engines = settings.tensor_parallel_size, settings.data_parallel_size
    bytes_of = kind_bytes(
        model,
        tensor_parallel_size=tp,
        expert_parallel_ranks=engines * settings.prefill_context_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
        capability=gpu.capability,
        online_quantization=settings.quantization,
    )
    head = bytes_of.get(WeightKind.LM_HEAD) or bytes_of.get(WeightKind.EMBEDDING, 0)
    dense = sum(bytes_of.get(kind, 0) for kind in (*_DENSE, WeightKind.NORM, WeightKind.OTHER))
    active_parameters(model)  # refuses experts without their counts
    experts = _params(model, WeightKind.EXPERTS)
    routed = experts * model.num_experts_per_tok // model.num_experts if model.num_experts else 0
    spread = tp * engines
    multi = [s for s in model.cache_specs if s.kind is not KVCacheSpecKind.MAMBA]
    return StepWork(
        weight_bytes=dense + head,
        expert_bytes=bytes_of.get(WeightKind.EXPERTS, 0),
        dense_format=_format(model, WeightKind.MLP, gpu),
        expert_format=_format(model, WeightKind.EXPERTS, gpu),
        experts=model.num_experts,
        experts_per_token=model.num_experts_per_tok,
        dense_seconds=sum(
            2 * _rank_params(model, kind, tp) / _peak(model, kind, settings, gpu) for kind in _DENSE
        ),
        head_seconds=2 * _head_params(model) / tp / gpu.bf16_flops,
        expert_seconds=2 * routed / spread / _peak(model, WeightKind.EXPERTS, settings, gpu),
        cache=_cache_reads(model, layout),
        state_bytes=sum(
            2 * state_bytes(s.state, layout.settings)  # read and written
            for s in model.cache_specs
            if s.state is not None
        ),
        attention_flops=sum(_pair_flops(model, s) for s in multi if not _window(s)) / tp,
        window_flops=tuple((w, _pair_flops(model, s) / tp) for s in multi if (w := _window(s))),
        decode_flops=sum(
            2 * model.num_attention_heads * 2 * s.head_size / tp
            for s in multi
            if s.kind is KVCacheSpecKind.MLA_ATTENTION
        ),
        layers=model.num_hidden_layers,
        expert_layers=len(_expert_layers(model)),
        reduced_bytes=model.hidden_size * model.dtype_bytes,
        reduces=2 * model.num_hidden_layers,
        ranks=spread if model.num_experts else tp,
        engines=engines,
        bandwidth=float(gpu.memory_bandwidth),
        link=float(gpu.nvlink_bandwidth or gpu.pcie_bandwidth or gpu.memory_bandwidth),
        nvlink=gpu.nvlink_bandwidth is not None,
        blackwell=gpu.capability >= _BLACKWELL,
        peak=float(gpu.bf16_flops),
    )


def _expert_layers(model: ModelFacts) -> set[int]:
    parts = (c for c in model.weights.components if c.kind is WeightKind.EXPERTS)
    return {layer for part in parts for layer in part.layers}


def _params(model: ModelFacts, kind: WeightKind) -> int:
    return sum(c.total_params for c in model.weights.components if c.kind is kind)


def _head_params(model: ModelFacts) -> int:
    return _params(model, WeightKind.LM_HEAD) or _params(model, WeightKind.EMBEDDING)


def _rank_params(model: ModelFacts, kind: WeightKind, tp: int) -> float:
    """Parameters one rank computes with: all of what is replicated, its share of the rest."""
    return sum(
        c.total_params / (1 if c.shard is Shard.REPLICATED else tp)
        for c in model.weights.components
        if c.kind is kind
    )


def _peak(
    model: ModelFacts, kind: WeightKind, settings: InstanceSettings, gpu: Accelerator
) -> float:
    """Flops per second in the precision that the GPU computes this kind of weights in.

    Weights alone in few bits are computed in 16: FP8 below 8.9, INT4 everywhere, FP4 below 10.0.
    MXFP4 weights of gpt-oss meet 8-bit activations on Blackwell.
    """
    sixteen = float(gpu.bf16_flops or 0)
    found: QuantizationFacts | None = model.quantization
    if found is None and settings.quantization is not None:
        found = ONLINE_FP8
    if found is None or kind in found.unquantized:
        return sixteen
    if found.bits == _FP8_BITS and gpu.capability >= _ADA:
        return float(gpu.fp8_flops or sixteen)
    if found.bits == _FOUR_BITS and _floats(found) and gpu.capability >= _BLACKWELL:
        if found.method == "mxfp4":
            return float(gpu.fp8_flops or sixteen)
        return float(gpu.fp4_flops or gpu.fp8_flops or sixteen)
    return sixteen


def _format(model: ModelFacts, kind: WeightKind, gpu: Accelerator) -> WeightFormat:
    found = model.quantization
    if found is None or found.bits != _FOUR_BITS or kind in found.unquantized:
        return WeightFormat.PLAIN
    least = _HOPPER if found.method == "mxfp4" else _BLACKWELL
    return WeightFormat.FP4 if _floats(found) and gpu.capability >= least else WeightFormat.INT4


def _floats(quantization: QuantizationFacts) -> bool:
    return quantization.method in _FLOAT_FOUR_BITS or quantization.scale_bits == _NVFP4_SCALE_BITS


def _cache_reads(model: ModelFacts, layout: CacheLayout) -> tuple[CacheReads, ...]:
    """Layers of one kind and window together."""
    settings, found = layout.settings, dict[int | None, float]()
    for spec in model.cache_specs:
        if spec.state is not None or spec.kind is KVCacheSpecKind.CROSS_ATTENTION:
            continue
        if spec.content_bytes is not None:
            size: float = spec.content_bytes / spec.tokens_per_entry
        elif spec.kind is KVCacheSpecKind.MLA_ATTENTION:
            size = latent_bytes(
                settings.cache_dtype,
                spec.head_size,
                settings.model_dtype_bytes,
                sparse_format=settings.sparse_format,
            )
        else:
            heads = kv_heads_per_rank(spec.num_kv_heads, settings.tensor_parallel_size)
            size = heads * head_bytes(
                settings.cache_dtype,
                spec.head_size,
                spec.head_size_v,
                settings.model_dtype_bytes,
            )
        window = _SPARSE_TOP_K if spec.sparse else _window(spec)
        found[window] = found.get(window, 0.0) + size
    shards = settings.decode_context_parallel_size
    return tuple(CacheReads(window=w, bytes_per_token=b / shards) for w, b in found.items())


def _window(spec: KVCacheSpec) -> int | None:
    return spec.window


def _pair_flops(model: ModelFacts, spec: KVCacheSpec) -> float:
    """Score and value of one pair of tokens in all heads of a layer."""
    if spec.kind is KVCacheSpecKind.MLA_ATTENTION:
        return 2.0 * model.num_attention_heads * 2 * model.head_dim
    return 2.0 * model.num_attention_heads * (spec.head_size + spec.head_size_v)
