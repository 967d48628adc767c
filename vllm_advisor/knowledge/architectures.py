"""How an architecture lays out its layers: a closed set of patterns, named by data files.

A new model of a known pattern needs a line in ``profiles/architectures/``; only a new kind of
layer needs code (in ``kv_layers`` and ``weights``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from vllm_advisor.knowledge.config_keys import CACHE_KEYS
from vllm_advisor.types.model import KVCacheSpecKind, StateKind
from vllm_advisor.types.runner import Head, Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Which layers keep what.

    ``uniform``: all full. ``all_sliding``: all windowed when the config sets a window.
    ``every_nth``: ``layer_types`` if given, else full every ``full_every`` layers, windowed
    between. ``window_from_layer``: Qwen's ``use_sliding_window`` / ``max_window_layers``.
    ``mla``: one latent vector per token, with index keys where attention is sparse. ``hybrid``:
    attention beside recurrent layers, told apart by ``kinds``. ``deepseek_v4``: compressed layers.
    ``encoder``: nothing. ``encoder_decoder``: full attention and cross attention in each layer.
    """

    pattern: Literal[
        "uniform",
        "all_sliding",
        "every_nth",
        "window_from_layer",
        "mla",
        "hybrid",
        "deepseek_v4",
        "encoder",
        "encoder_decoder",
    ]
    full_every: int | None = None
    full_every_key: str | None = None
    window_key: str = "sliding_window"
    window_kind: KVCacheSpecKind = KVCacheSpecKind.SLIDING_WINDOW
    window_extra: int = 0
    index_key: str | None = None  # config of index keys that sparse layers keep
    attention_per_layer: int = 1  # LongCat has two attention layers in each of its layers
    global_head_dim: int | None = None  # full layers' head size where no key says it
    global_head_dim_key: str | None = None
    global_heads_key: str | None = None
    shared_key: str | None = None  # so many last layers read the cache of earlier ones
    # hybrid: how kinds are told apart, their names, and what recurs.
    kinds: Literal["named", "both", "recurrent", "period", "kimi"] = "named"
    kinds_keys: tuple[str, ...] = ("layer_types", "layers_block_type")
    attention: tuple[Any, ...] = ("full_attention", "attention")
    recurrent: tuple[Any, ...] = ("linear_attention", "mamba")
    neither: tuple[Any, ...] = ()
    attention_recurs: bool = False
    recurrent_kind: StateKind | None = None
    recurrent_dtype: str | None = None  # of the recurrence, where the config says nothing
    latent: bool = False  # its attention is MLA
    attention_head_dim_key: str | None = None

    @property
    def explained(self) -> frozenset[str]:
        """Cache-changing config keys that this pattern takes into account."""
        keys: dict[str, set[str]] = {
            "uniform": set(),
            "mla": {"kv_lora_rank", "index_topk", "layer_types"},
            "deepseek_v4": {"compress_ratios", "index_topk", "sliding_window"},
            "encoder": set(CACHE_KEYS),
            "encoder_decoder": {"is_encoder_decoder"},
            "hybrid": set(CACHE_KEYS - {"sliding_window", "num_kv_shared_layers", "index_topk"}),
        }
        explained = keys.get(self.pattern, {self.window_key, "layer_types"})
        others = (
            self.shared_key,
            self.global_head_dim_key,
            self.global_heads_key,
            self.index_key,
            "per_layer_config",
        )
        return frozenset(explained | {key for key in others if key})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """Config keys of the expert layers; names are keys of config.json, not values."""

    experts: str
    intermediate: str
    dense_first: str | None = None  # the first k layers are dense
    dense_list: str | None = None  # a list of dense layers
    sparse_step: str | None = None  # experts in every n-th layer
    dense_intermediate: str | None = None  # intermediate size of the dense layers
    shared_count: str | None = None  # shared experts of the routed experts' size
    shared_count_fixed: int = 0
    shared_intermediate: str | None = None  # one shared expert of its own size
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    correction_bias: bool = False
    block: str = "mlp"  # what the checkpoint calls the module, and its shared experts
    shared_module: str = "shared_experts"
    expert_scale: bool = False  # the router scales its input and each expert's output
    beside_dense: bool = False  # a dense MLP in the sparse layers, too
    rank_multiple: int = 1  # each rank's share of the intermediate size is padded to this
    router_bytes: int | None = None  # where the router is kept in another dtype than the model
    latent: str | None = None  # experts work on a projection of this size
    latent_norm: str | None = None  # a norm follows the experts there
    projections: tuple[str, ...] = ()  # modules that lead into the latent space and out of it
    period: str | None = None  # experts in layers with i % period == offset
    offset: str | None = None
    optional: bool = False  # a config without experts is a dense model
    correction_bias_key: str | None = None
    latent_quantized: bool = True  # whether a checkpoint's quantization reaches the projections


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """Recurrent mixers: a constant, or the config key that decides."""

    bias: bool | str = False  # of the projections
    conv_bias: bool | str = False
    norm: bool | str = True
    decay_bytes: int | None = 4  # of A_log: FP32, or None for the model's dtype
    inner: tuple[str, ...] = ()  # keys that name the width of the mixer
    inner_of_heads: bool = False  # heads x head size; else expand x hidden size
    # What checkpoints call the mixer and the projections of a gated delta net.
    module: str = "mixer"
    inputs: tuple[str, ...] = ("in_proj_qkv", "in_proj_z")
    gates: tuple[str, ...] = ("in_proj_b", "in_proj_a")
    output: str = "out_proj"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Tables of cosines and sines that vLLM's model class builds.

    ``single``: one, or one for each layer type that ``rope_parameters`` names. ``none``: no
    rotation. ``frequencies``: vLLM (0.32, 0.33) runs it through the Transformers backend, which
    computes cosines in each step. ``causal_mask``: that backend keeps a mask for learned positions.
    ``local_and_global``: windowed layers have a table of their own. ``compressed``: DeepSeek-V4's.
    """

    tables: Literal[
        "single", "none", "frequencies", "causal_mask", "local_and_global", "compressed"
    ] = "single"
    float32: bool = False
    float32_yarn: bool = False  # where YaRN stretches it
    video: int | None = None  # how much longer it is for M-RoPE, where not four times
    indexer: bool = False  # sparse attention's indexer has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Mtp:
    """Layers that draft tokens for speculative decoding, as vLLM builds them.

    ``fusion`` joins the embedding with the target's hidden state: ``plain`` is replicated and
    never quantized, ``replicated`` and ``column`` (divided by TP) may be, ``pair`` is one matrix
    for each of the two.
    """

    count: str  # the key that says how many there are
    default: int = 0  # where the config does not say
    predicts: bool = True  # the key is vLLM's n_predict as well
    fusion: Literal["plain", "replicated", "column", "pair"]
    fusion_module: str = ""  # what quantization lists call it
    fusion_16_bit: tuple[str, ...] = ()  # methods that leave it alone whatever they list
    prefix: str = "layers.{layer}"  # what lists call a layer; {index} counts from 0
    norms: int = 3  # vectors beside those of its layer
    dense: bool = False  # a plain MLP where the target has experts
    first_kinds: bool = False  # they attend as the target's first layers do
    kinds: tuple[str, ...] = ()  # hybrid: the keys that name its layers
    shares_embedding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One family: bias and norm fields hold a constant or the config key that decides."""

    source: str
    layers: Layers
    qkv_bias: bool | str = False
    output_bias: bool | str = False
    mlp_bias: bool | str = "mlp_bias"
    down_bias: bool = False  # of the MLP's last projection alone
    head_bias: bool | str = False  # of the output head
    # ``full_split``: over all heads, and each rank holds its heads' share.
    qk_norm: Literal["none", "head", "full", "full_split"] = "none"
    qk_norm_key: str | None = None  # the key that switches these norms on
    attention_sinks: bool = False
    derived_head_dim: bool = False  # hidden size over heads, whatever head_dim says
    item_tokens: int = 0  # of the largest image or video, where images attend both ways
    prefix_lm: bool | str = False  # a key: images attend both ways where it says "vision"
    float16: bool = True  # False: vLLM refuses it for numerical instability
    block_outermost: bool = False
    gated_mlp: bool = True
    whole_mlp: bool = False  # every rank holds all of it
    activation_params: int = 0  # of the MLP's activation
    norms_per_layer: int = 2
    norm_params: int = 1  # vectors per norm: 2 with a bias
    tie_word_embeddings: bool = False  # when the config does not say
    embedding_on_every_stage: bool = False  # under pipeline parallelism
    weights_unchecked: bool = False  # vLLM has no such model: its weights are a guess
    # Parts of one family only, in code: knowledge/gemma_weights.py.
    family: Literal["gemma3n", "gemma4"] | None = None
    moe: Moe | None = None
    # What config.json leaves out, as transformers fills it in.
    defaults: dict[str, Any] = field(default_factory=dict)
    # Keys that this family calls otherwise than most: {usual name: its name}; a dot goes inside.
    keys: dict[str, str] = field(default_factory=dict)
    mlp_ratio: int | None = None  # intermediate size over hidden size, where no key says it
    positions: int | None = None  # learned ones: a table of so many rows beyond the longest
    split_positions: bool = False  # tensor parallelism cuts it
    token_types: bool = False  # a table of token types
    embedding_norm: bool = False  # a norm follows the embedding
    mixer: Mixer = Mixer()
    rope: Rope = Rope()
    attention_scales: bool = True  # beside each attention layer's cache
    feed_forward: Literal["every", "named", "none", "shared_blocks"] = "every"
    query_gate: bool | str = False  # q_proj makes a gate as wide as the queries
    head_on_every_stage: bool = False
    final_norm_on_every_stage: bool = False
    adjusted_mlp: bool = False  # LFM2: the MLP's size is derived from intermediate_size
    ties: Literal["config", "never", "always"] = "config"  # whatever the config says
    attention_module: str = "self_attn"
    mtp: Mtp | None = None
    pipeline: bool = True  # False: vLLM refuses pipeline parallelism
    # Models that pool: attention that sees every token, how a sequence is pooled, what follows.
    runner: Runner = Runner.GENERATE
    causal: bool | str = True  # or the key that decides; without it, it is
    pooling: Literal["LAST", "CLS", "MEAN", "STEP"] = "LAST"
    head: Head = Head.LM
    final_norm: bool = True
    first_norm: bool = True  # False: the first layer's attention has none
