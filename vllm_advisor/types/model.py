"""Facts of a model: its shape, its KV cache layers, its weights, its flags."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from vllm_advisor.types.rope import RopeFacts
from vllm_advisor.types.runner import Convert, Runner
from vllm_advisor.types.serving import ServingFacts
from vllm_advisor.types.source import Assumption, Source


def dtype_bytes(dtype: str) -> int:
    """Bytes of one element of a model's dtype, by torch's name."""
    return {"float32": 4}.get(dtype, 2)


class KVCacheSpecKind(StrEnum):
    """vLLM's own kinds (vllm:0.33.0:vllm/v1/kv_cache_interface.py#KVCacheSpecKind)."""

    FULL_ATTENTION = "full_attention"
    SLIDING_WINDOW = "sliding_window"
    CHUNKED_LOCAL_ATTENTION = "chunked_local_attention"
    MLA_ATTENTION = "mla_attention"
    SLIDING_WINDOW_MLA = "sliding_window_mla"
    MAMBA = "mamba"
    CROSS_ATTENTION = "cross_attention"


class StateKind(StrEnum):
    """Recurrent layers; vLLM keeps a different number of states for each."""

    MAMBA1 = "mamba1"
    MAMBA2 = "mamba2"
    GATED_DELTA_NET = "gated_delta_net"
    KDA = "kda"  # Kimi delta attention
    SHORT_CONV = "short_conv"
    LINEAR_ATTENTION = "linear_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """What a recurrent layer keeps per request, before tensor parallelism.

    The convolution keeps ``conv_rows`` x (``conv_channels`` + 2 x groups x ``group_size``)
    elements, the recurrence ``elements``; TP divides both. Mamba2's groups are replicated when
    TP does not divide them. Byte sizes are of one element; ``element_bytes`` is ``None`` where the
    recurrence is kept in the convolution's dtype.
    """

    kind: StateKind
    conv_rows: int = 0
    conv_channels: int = 0
    conv_bytes: int = 2
    num_groups: int = 0
    group_size: int = 0
    elements: int = 0
    element_bytes: int | None = None
    key_head_dim: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCacheSpec:
    """What one layer keeps per token, before tensor parallelism and cache dtype.

    ``num_kv_heads`` is the model's total. For ``mla_attention`` the layer keeps one vector of
    ``head_size`` (= kv_lora_rank + qk_rope_head_dim) elements and no V: ``head_size_v`` is 0.
    ``window`` is the sliding window or the attention chunk, in tokens. ``state`` is set for
    ``mamba`` only.

    The rest describes layers with a format of their own: ``content_bytes`` of one entry whatever
    the cache dtype, one entry for ``tokens_per_entry`` tokens, blocks of ``block_size`` tokens,
    pages rounded up to ``alignment``. ``sparse`` marks the latent cache that a sparse-attention
    backend may store in a format of its own.
    """

    kind: KVCacheSpecKind
    num_kv_heads: int
    head_size: int
    head_size_v: int
    window: int | None = None
    state: RecurrentState | None = None
    content_bytes: int | None = None
    tokens_per_entry: int = 1
    block_size: int | None = None
    alignment: int = 1
    sparse: bool = False


class Shard(StrEnum):
    """How tensor parallelism spreads a weight."""

    SPLIT = "split"  # divided by TP
    KV_HEADS = "kv_heads"  # divided by TP down to one KV head, then replicated
    EXPERTS = "experts"  # cut by TP x DP, or whole experts spread over them
    EXPERTS_WHOLE = "experts_whole"  # never cut, only spread with expert parallelism
    REPLICATED = "replicated"
    EXPERT_MAP = "expert_map"  # whole on every rank, with expert parallelism alone
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
    rows: int = 0  # of the vocabulary, for Shard.VOCAB; positions of a RoPE table
    stages: str = "first"
    dtype_bytes: int | None = None  # where it differs from the model's dtype
    split_size: int = 0  # the dimension that TP splits, where kernels pad each rank's share ...
    split_multiple: int = 1  # ... to a multiple of this
    blackwell_multiple: int = 1  # 16-bit experts on compute capability 10.x: to this
    matrices: int = 0
    experts: int = 0  # how many, for the parts that expert parallelism spreads
    kv_heads: int = 0  # for Shard.KV_HEADS where the model's number does not apply
    modules: tuple[str, ...] = ()
    quantization: QuantizationFacts | None = None
    after_loading: bool = False  # beside the parameters: buffers, and what kernels make of them
    shared: bool = False  # one for all its layers of a stage
    whole_by_data: bool = False  # a tower that --mm-encoder-tp-mode data keeps whole on every rank

    @property
    def total_params(self) -> int:
        """Parameters over all layers, before any padding or replication."""
        return 0 if self.after_loading else self.params * (len(self.layers) or 1)


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
    group_size: int | None = None  # inputs that share a scale; a shard holds whole groups


@dataclass(frozen=True, slots=True, kw_only=True)
class MtpFacts:
    """Layers of the checkpoint that draft tokens (multi-token prediction).

    ``kv_cache`` and ``components`` are theirs alone, layers counted from 0. ``predicts`` is vLLM's
    ``n_predict`` (``None`` where the config does not say), ``modules`` how many of them may draft
    one after the other. ``shares_embedding`` is False where vLLM keeps an embedding for them on
    the last of several pipeline stages.
    """

    predicts: int | None
    modules: int
    kv_cache: tuple[tuple[KVCacheSpec, ...], ...]
    components: tuple[WeightComponent, ...]
    shares_embedding: bool = False


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
    kv_cache: tuple[tuple[KVCacheSpec, ...], ...]  # of each layer; empty if it keeps nothing
    weights: WeightFacts
    source: Source
    rope: RopeFacts = field(default_factory=RopeFacts)
    quantization: QuantizationFacts | None = None
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    uses_mla: bool = False
    attention_sinks: bool = False
    block_outermost: bool = False  # its backend lays pages of one block side by side
    prefix_lm: bool = False  # images attend in both directions (Gemma 3 with vision)
    item_tokens: int = 0  # such an image or video is read in one step: its tokens
    float16: bool = True  # False: vLLM refuses --dtype float16 for it
    kv_sharing: bool = False  # the last layers read the cache of earlier ones
    mtp: MtpFacts | None = None  # layers that draft tokens, where the checkpoint has them
    modalities: tuple[str, ...] = ()  # beside text: image, video, audio
    text_config_key: str | None = None  # "text_config" when the text model's keys are nested
    runner: Runner = Runner.GENERATE  # what --runner auto takes
    convert: Convert = Convert.NONE
    generates: bool = True  # False: --runner generate is refused
    pooling_type: str = "LAST"
    bidirectional: bool = False  # every token sees every other: nothing is cached
    num_labels: int = 2  # of a classifier; transformers' default is 2
    stored_float32: bool = False  # its publisher's dtype, which --dtype auto does not load
    pipeline: bool = True  # vLLM can spread its layers over stages
    window_needed: bool = False  # its config class takes no null for the sliding window
    encoder_tokens: int = 0  # of an item that one batch has to hold (encoder-decoder models)
    needs_remote_code: bool = False  # vLLM has no model of its own for it
    brings_code: bool = False  # its config names code of its repository (auto_map)
    serving: ServingFacts = field(default_factory=ServingFacts)
    assumptions: tuple[Assumption, ...] = ()

    @property
    def cache_specs(self) -> tuple[KVCacheSpec, ...]:
        """Every spec of every layer."""
        return tuple(spec for layer in self.kv_cache for spec in layer)

    @property
    def is_hybrid(self) -> bool:
        """Attention beside recurrent layers: vLLM aligns their pages."""
        return len({s.kind is KVCacheSpecKind.MAMBA for s in self.cache_specs}) == 2

    @property
    def encoder_decoder(self) -> bool:
        """Its decoder attends to an encoder's states as well."""
        return any(s.kind is KVCacheSpecKind.CROSS_ATTENTION for s in self.cache_specs)

    @property
    def multimodal(self) -> bool:
        """Takes more than text."""
        return bool(self.modalities)

    @property
    def drops_encoders(self) -> bool:
        """``--language-model-only`` is known to leave its encoders unloaded.

        By its publisher's recipe, or because its tower is one that is computed: vLLM leaves those
        out (vllm/model_executor/models/interfaces.py#_mark_tower_model).
        """
        tower = any(part.kind is WeightKind.VISION for part in self.weights.components)
        return self.multimodal and (tower or "text_only" in self.serving.features)

    @property
    def dtype_bytes(self) -> int:
        """Bytes of one unquantized weight or activation."""
        return dtype_bytes(self.dtype)
