"""How an architecture lays out its layers: a closed set of patterns, named by data files.

A new model of a known pattern needs a line in ``profiles/architectures/``; only a new kind of
layer needs code (in ``kv_layers`` and ``weights``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from vllm_advisor import resources
from vllm_advisor.knowledge.profile_file import read_yaml, record
from vllm_advisor.types.model import KVCacheSpecKind, StateKind

# Config keys that change what a layer caches. Each pattern consumes some; a key that is set and
# not consumed means that the cache would be sized wrongly, so it is refused.
CACHE_KEYS = frozenset(
    {
        "attention_chunk_size",
        "attn_layer_indices",
        "attn_layer_period",
        "block_configs",
        "compress_ratios",
        "conv_L_cache",
        "cross_attention_layers",
        "full_attention_interval",
        "full_attn_idxs",
        "global_head_dim",
        "hybrid_override_pattern",
        "index_topk",
        "is_encoder_decoder",
        "kv_lora_rank",
        "layer_types",
        "layers_block_type",
        "linear_attn_config",
        "linear_num_value_heads",
        "mamba_d_state",
        "mamba_num_heads",
        "num_global_key_value_heads",
        "num_kv_shared_layers",
        "per_layer_config",
        "sliding_window",
        "sparse_attention_config",
        "ssm_state_size",
        "state_size",
    }
)

EXPERT_KEYS = (
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_routed_experts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Which layers keep what.

    ``uniform``: all full. ``all_sliding``: all windowed when the config sets a window.
    ``every_nth``: ``layer_types`` if given, else full every ``full_every`` layers, windowed
    between. ``window_from_layer``: Qwen's ``use_sliding_window`` / ``max_window_layers``.
    ``mla``: one latent vector per token, with index keys where attention is sparse. ``hybrid``:
    attention beside recurrent layers, told apart by ``kinds``. ``deepseek_v4``: compressed layers.
    """

    pattern: Literal[
        "uniform",
        "all_sliding",
        "every_nth",
        "window_from_layer",
        "mla",
        "hybrid",
        "deepseek_v4",
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
class Architecture:
    """One family: bias and norm fields hold a constant or the config key that decides."""

    source: str
    layers: Layers
    qkv_bias: bool | str = False
    output_bias: bool | str = False
    mlp_bias: bool | str = "mlp_bias"
    head_bias: bool | str = False  # of the output head
    # ``full_split``: over all heads, and each rank holds its heads' share.
    qk_norm: Literal["none", "head", "full", "full_split"] = "none"
    attention_sinks: bool = False
    item_tokens: int = 0  # of the largest image or video, where images attend both ways
    prefix_lm: bool | str = False  # a key: images attend both ways where it says "vision"
    float16: bool = True  # False: vLLM refuses it for numerical instability
    block_outermost: bool = False
    gated_mlp: bool = True
    norms_per_layer: int = 2
    norm_params: int = 1  # vectors per norm: 2 with a bias
    tie_word_embeddings: bool = False  # when the config does not say
    embedding_on_every_stage: bool = False  # under pipeline parallelism
    weights_unchecked: bool = False  # vLLM has no such model: its weights are a guess
    # Parts of one family only, in code: knowledge/gemma_weights.py.
    family: Literal["gemma3n", "gemma4"] | None = None
    moe: Moe | None = None
    # Hybrid models: what config.json leaves out, as transformers fills it in.
    defaults: dict[str, Any] = field(default_factory=dict)
    mixer: Mixer = Mixer()
    feed_forward: Literal["every", "named", "none", "shared_blocks"] = "every"
    query_gate: bool | str = False  # q_proj makes a gate as wide as the queries
    head_on_every_stage: bool = False
    final_norm_on_every_stage: bool = False
    adjusted_mlp: bool = False  # LFM2: the MLP's size is derived from intermediate_size
    ties: Literal["config", "never", "always"] = "config"  # whatever the config says
    attention_module: str = "self_attn"


@cache
def find_architecture(name: str) -> Architecture | None:
    """The layout of an architecture by its Hugging Face class name, or ``None`` if unknown."""
    for path in sorted(resources.profiles("architectures").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if name not in text:
            continue
        family = read_yaml(path)
        names, overrides = family.pop("architectures"), family.pop("overrides", {})
        if name in names:
            return record(Architecture, {**family, **overrides.get(name, {})}, path)
    return None
