"""Facts of a model: its shape, its KV cache layers, its weights, its flags."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vllm_advisor.types.source import Assumption, Source


class KVCacheSpecKind(StrEnum):
    """vLLM's own kinds (vllm:0.33.0:vllm/v1/kv_cache_interface.py#KVCacheSpecKind)."""

    FULL_ATTENTION = "full_attention"
    SLIDING_WINDOW = "sliding_window"
    CHUNKED_LOCAL_ATTENTION = "chunked_local_attention"
    MLA_ATTENTION = "mla_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCacheSpec:
    """What one layer keeps per token, before tensor parallelism and cache dtype.

    ``num_kv_heads`` is the model's total. For ``mla_attention`` the layer keeps one vector of
    ``head_size`` (= kv_lora_rank + qk_rope_head_dim) elements and no V: ``head_size_v`` is 0.
    ``window`` is the sliding window or the attention chunk, in tokens.
    """

    kind: KVCacheSpecKind
    num_kv_heads: int
    head_size: int
    head_size_v: int
    window: int | None = None


class Shard(StrEnum):
    """How tensor parallelism spreads a weight."""

    SPLIT = "split"  # divided by TP
    KV_HEADS = "kv_heads"  # divided by TP down to one KV head, then replicated
    EXPERTS = "experts"  # divided by TP, or by TP x DP with expert parallelism
    REPLICATED = "replicated"
    VOCAB = "vocab"  # rows padded to a multiple of 64, divided by TP


class WeightKind(StrEnum):
    """Parts of the weights, each quantized and sharded in its own way."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    MLP = "mlp"
    EXPERTS = "experts"
    NORM = "norm"  # norms, biases, router gates: never quantized
    VISION = "vision"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightComponent:
    """Parameters of one part of the model.

    ``per_layer`` counts the parameters of one layer and ``layers`` says which layers have them;
    parts outside the stack (embedding, head, vision) have an empty ``layers``.
    ``linear`` marks matrices that a quantization method replaces. ``stages`` says which pipeline
    stages hold a part outside the stack: ``first``, ``last``, ``ends`` (both) or ``every``.
    """

    name: str
    kind: WeightKind
    params: int  # of one layer, or of the part
    layers: tuple[int, ...] = ()
    shard: Shard = Shard.SPLIT
    linear: bool = True
    rows: int = 0  # vocabulary rows, for Shard.VOCAB
    stages: str = "first"
    dtype_bytes: int | None = None  # where it differs from the model's dtype
    split_size: int = 0  # the dimension that TP splits, where kernels pad each rank's share ...
    split_multiple: int = 1  # ... to a multiple of this

    @property
    def total_params(self) -> int:
        """Parameters over all layers, before any padding or replication."""
        return self.params * (len(self.layers) or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFacts:
    """The weights by component, and their size on disk where it is known.

    ``checkpoint_bytes`` comes from safetensors headers or the index and is the ground truth the
    components are held against; ``None`` when nobody has looked.
    """

    components: tuple[WeightComponent, ...]
    checkpoint_bytes: int | None = None
    source: Source

    @property
    def total_params(self) -> int:
        """Parameters of the model."""
        return sum(c.total_params for c in self.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationFacts:
    """``quantization_config`` of the checkpoint.

    ``bits`` per quantized weight, ``scale_bits`` of scales and zero points per weight,
    ``unquantized`` lists the weight kinds the checkpoint leaves in the model's dtype.
    """

    method: str
    bits: int
    scale_bits: float = 0.0
    unquantized: tuple[WeightKind, ...] = ()
    kv_cache_dtype: str | None = None  # declared by the checkpoint
    weight_block: tuple[int, int] | None = None  # block-scaled weights: every shard is a multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeFacts:
    """Position encoding: ``rope_parameters`` (or the older ``rope_scaling``) of the config."""

    rope_type: str = "default"
    factor: float = 1.0
    original_max_position_embeddings: int | None = None
    theta: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingVariant:
    """A published quantized checkpoint of the same model."""

    name: str
    model_id: str
    precision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """Verified flags for serving this model: what its recipe says.

    ``features`` maps a feature (``tool_calling``, ``reasoning``, ``text_only``) to flags by dest.
    """

    min_vllm_version: str | None = None
    base_args: dict[str, Any] = field(default_factory=dict)
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: tuple[ServingVariant, ...] = ()
    yarn_factor: float | None = None  # largest YaRN factor the publisher documents
    yarn_original: int | None = None  # ... over this many trained positions
    source: Source | None = None
    context_source: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Everything ``sizing`` and ``decide`` need to know of a model."""

    model_id: str
    architecture: str
    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    dtype: str  # what vLLM's --dtype auto loads: bfloat16 or float16
    kv_cache: tuple[KVCacheSpec | None, ...]  # one per layer; None keeps nothing
    weights: WeightFacts
    source: Source
    rope: RopeFacts = field(default_factory=RopeFacts)
    quantization: QuantizationFacts | None = None
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    uses_mla: bool = False
    attention_sinks: bool = False
    prefix_lm: bool = False  # images attend in both directions (Gemma 3 with vision)
    modalities: tuple[str, ...] = ()  # beside text: image, video, audio
    text_config_key: str | None = None  # "text_config" when the text model's keys are nested
    needs_remote_code: bool = False
    serving: ServingFacts = field(default_factory=ServingFacts)
    assumptions: tuple[Assumption, ...] = ()

    @property
    def multimodal(self) -> bool:
        """Takes more than text."""
        return bool(self.modalities)

    @property
    def drops_encoders(self) -> bool:
        """``--language-model-only`` is known to leave its encoders unloaded."""
        return self.multimodal and "text_only" in self.serving.features

    @property
    def dtype_bytes(self) -> int:
        """Bytes of one unquantized weight or activation."""
        return {"float32": 4}.get(self.dtype, 2)
