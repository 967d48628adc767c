"""How an architecture lays out its layers: a closed set of patterns, named by data files.

A new model of a known pattern needs a line in ``profiles/architectures/``; only a new kind of
layer needs code (in ``kv_layers`` and ``weights``).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from vllm_advisor import resources
from vllm_advisor.types.model import KVCacheSpecKind

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
        "sliding_window",
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


class _Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Layers(_Profile):
    """Which layers keep what.

    ``uniform``: all full. ``all_sliding``: all windowed when the config sets a window.
    ``every_nth``: ``layer_types`` if given, else full every ``full_every`` layers, windowed
    between. ``window_from_layer``: Qwen's ``use_sliding_window`` / ``max_window_layers``.
    ``mla``: one latent vector per token.
    """

    pattern: Literal["uniform", "all_sliding", "every_nth", "window_from_layer", "mla"]
    full_every: int | None = None
    full_every_key: str | None = None
    window_key: str = "sliding_window"
    window_kind: KVCacheSpecKind = KVCacheSpecKind.SLIDING_WINDOW
    window_extra: int = 0


class Moe(_Profile):
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
    rank_multiple: int = 1  # each rank's share of the intermediate size is padded to this
    router_bytes: int | None = None  # where the router is kept in another dtype than the model


class Architecture(_Profile):
    """One family: bias and norm fields hold a constant or the config key that decides."""

    source: str
    layers: Layers
    qkv_bias: bool | str = False
    output_bias: bool | str = False
    mlp_bias: bool | str = "mlp_bias"
    qk_norm: Literal["none", "head", "full"] = "none"
    attention_sinks: bool = False
    prefix_lm: bool = False
    gated_mlp: bool = True
    norms_per_layer: int = 2
    norm_params: int = 1  # vectors per norm: 2 with a bias
    tie_word_embeddings: bool = False  # when the config does not say
    embedding_on_every_stage: bool = False  # under pipeline parallelism
    moe: Moe | None = None


class _File(Architecture):
    architectures: tuple[str, ...]
    overrides: dict[str, dict[str, Any]] = {}


@cache
def find_architecture(name: str) -> Architecture | None:
    """The layout of an architecture by its Hugging Face class name, or ``None`` if unknown."""
    for path in sorted(resources.profiles("architectures").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if name not in text:
            continue
        raw = _File.model_validate(yaml.safe_load(text))
        if name not in raw.architectures:
            continue
        fields = raw.model_dump(exclude={"architectures", "overrides"}, exclude_unset=True)
        return Architecture.model_validate({**fields, **raw.overrides.get(name, {})})
    return None
