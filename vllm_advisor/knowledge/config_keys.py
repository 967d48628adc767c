"""Keys of config.json that mean the same in every family of models."""

from __future__ import annotations

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
