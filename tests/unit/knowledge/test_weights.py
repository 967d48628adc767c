"""Weights from config.json, counted by hand, and what happens where they cannot be counted."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor.api.models import find_model
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Confidence, Source, SourceKind

HERE = Source(SourceKind.LOCAL, "config.json")
DENSE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
# q and o: 256 x 256 each; k and v: 64 x 256 each.
ATTENTION = 2 * 256 * 256 + 2 * 64 * 256
NORMS = 2 * 256
MLP = 3 * 256 * 512
VOCABULARY = 1024 * 256  # 1,000 rows padded to a multiple of 64
EXPERTS = {
    **DENSE,
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


def facts(config: dict[str, Any], checkpoint_bytes: int | None = None) -> ModelFacts:
    return model_facts("org/model", config, source=HERE, checkpoint_bytes=checkpoint_bytes)


def rank(config: dict[str, Any], **how: Any) -> int:
    """Parameters alone: what is made of them is tests/unit/sizing/test_allocator.py's question."""
    return weight_bytes(facts(config), **{"loaded": False, **how}).rank_bytes


def test_dense_model() -> None:
    layers = 2 * (ATTENTION + NORMS + MLP)
    assert rank(DENSE) == 2 * (layers + 2 * VOCABULARY + 256)


def test_kv_heads_are_repeated_beyond_their_number() -> None:
    # TP 4 over 2 KV heads: each rank keeps one whole head of 32 x 256 for K and for V.
    attention = 2 * 256 * 256 // 4 + 2 * 32 * 256
    layers = 2 * (attention + NORMS + MLP // 4)
    assert rank(DENSE, tensor_parallel_size=4) == 2 * (layers + 2 * VOCABULARY // 4 + 256)


def test_experts_are_cut_by_tensor_and_data_parallelism() -> None:
    routed = 8 * MLP
    # Mixtral's embedding is on every pipeline stage, which does not matter with one.
    rest = 2 * (ATTENTION + NORMS + 256 * 8) + 2 * VOCABULARY + 256
    assert rank(EXPERTS) == 2 * (2 * routed + rest)
    assert rank(EXPERTS, expert_parallel_ranks=4) == 2 * (2 * routed // 4 + rest)


def test_experts_stay_whole_with_expert_parallelism() -> None:
    # 8 experts over 3 ranks: the fullest has 3.
    rest = 2 * (ATTENTION + NORMS + 256 * 8) + 2 * VOCABULARY + 256
    found = rank(EXPERTS, expert_parallel_ranks=3, expert_parallel=True)
    assert found == 2 * (2 * 3 * MLP + rest)


def test_indexers_of_sparse_attention() -> None:
    config = {
        **DENSE,
        "architectures": ["DeepseekV32ForCausalLM"],
        "kv_lora_rank": 64,
        "q_lora_rank": 128,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
        "n_routed_experts": 4,
        "moe_intermediate_size": 128,
        "first_k_dense_replace": 1,
        "n_shared_experts": 1,
        "topk_method": "noaux_tc",
    }
    sparse = {**config, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 128}
    # Queries 4 x 128 x 128, key and head weights (128 + 4) x 256, an FP32 layer norm of 128.
    each = 2 * (4 * 128 * 128 + (128 + 4) * 256) + 4 * 2 * 128
    for ranks in (1, 2):  # whole on every rank
        how = {"tensor_parallel_size": ranks}
        assert rank(sparse, **how) - rank(config, **how) == 2 * each
    shared = {**sparse, "indexer_types": ["full", "shared"]}
    assert rank(shared) - rank(config) == each


def test_gemma_4_full_layers_have_heads_of_their_own() -> None:
    config = {
        **DENSE,
        "architectures": ["Gemma4ForCausalLM"],
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 64,
        "tie_word_embeddings": True,
        "global_head_dim": 64,
        "num_global_key_value_heads": 1,
    }
    sliding = ATTENTION + 2 * 32  # and the norms of query and key heads
    full = 2 * 256 * 8 * 64 + 2 * 64 * 256 + 2 * 64
    layers = sliding + full + 2 * (4 * 256 + MLP)
    assert rank(config) == 2 * (layers + VOCABULARY + 256)


def test_gemma_4_shared_layers_keep_no_keys_and_may_be_twice_as_wide() -> None:
    config = {
        **DENSE,
        "architectures": ["Gemma4ForCausalLM"],
        "layer_types": ["full_attention", "full_attention"],
        "sliding_window": 64,
        "tie_word_embeddings": True,
        "global_head_dim": 32,
        "num_kv_shared_layers": 1,
        "use_double_wide_mlp": True,
    }
    layers = ATTENTION + 2 * 32 + 2 * 256 * 256 + 32 + 2 * 4 * 256 + 3 * MLP
    assert rank(config) == 2 * (layers + VOCABULARY + 256)


def test_mxfp4_is_padded_by_gpu() -> None:
    config = {
        **EXPERTS,
        "architectures": ["GptOssForCausalLM"],
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"],
        "intermediate_size": 320,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    hopper = rank(config, loaded=False)
    blackwell = rank(config, capability=100, loaded=False)
    # 320 is padded to 384 where kernels want 128 rows; the hidden size of 256 fits. 4.25 bits for
    # 3 x 64 x 256 more weights of 8 experts, and 2 x 64 more biases in 16 bits, in 2 layers.
    weights = 8 * 3 * 64 * 256 * 425 // 800
    assert blackwell - hopper == 2 * (weights + 2 * 8 * 2 * 64)


def test_gpt_oss_keeps_scales_twice_on_hopper() -> None:
    """The start-up log of gpt-oss-120b on an H100 says 64.38 GiB (vLLM 0.11 and 0.14): 0.03 less.

    36 layers of 128 experts, hidden and intermediate size 2,880. Triton's own scales have rows in
    256 and groups of 32 in fours: 5,888 x 92 for gate and up, 3,072 x 92 for down, beside those
    that were loaded; biases of 3 x 2,880 grow from 2 bytes to 4. YaRN's table of 131,072 positions
    x 64 is in FP32, and each layer has 4 scales of 4 bytes.
    """
    model = find_model("openai/gpt-oss-120b")
    before = weight_bytes(model, loaded=False).rank_bytes
    after = weight_bytes(model).rank_bytes
    scales = 36 * 128 * 92 * (5888 + 3072)
    biases = 36 * 128 * 3 * 2880 * 2
    beside = 131_072 * 64 * 4 + 36 * 4 * 4
    assert after - before == scales + biases + beside
    assert after / 2**30 == pytest.approx(64.38, abs=0.035)


def test_unknown_architecture_with_experts_is_refused() -> None:
    config = {**DENSE, "architectures": ["NewForCausalLM"], "num_experts": 8}
    with pytest.raises(NotModelledError, match="experts"):
        facts(config)


def test_a_known_size_stands_for_an_unknown_layout() -> None:
    config = {**DENSE, "architectures": ["NewForCausalLM"], "num_experts": 8}
    model = facts(config, checkpoint_bytes=8_000_000)
    lowered = {a.id: a.lowers_to for a in model.assumptions}
    assert lowered["weights-by-size"] is Confidence.LOW
    assert weight_bytes(model).rank_bytes == 8_000_000
    assert weight_bytes(model, tensor_parallel_size=4).rank_bytes == 2_000_000


def test_a_missing_key_is_named() -> None:
    config = {k: v for k, v in DENSE.items() if k != "intermediate_size"}
    with pytest.raises(NotModelledError, match="intermediate_size"):
        facts(config)


def test_unknown_encoders_lower_the_confidence() -> None:
    config = {**DENSE, "vision_config": {"model_type": "new_tower"}, "image_token_id": 7}
    lowered = {a.id for a in facts(config).assumptions if a.lowers_to is Confidence.LOW}
    assert "encoders-not-counted" in lowered


def test_encoders_come_out_of_a_known_size() -> None:
    config = {**DENSE, "vision_config": {"model_type": "new_tower"}, "image_token_id": 7}
    text = rank(DENSE)
    # What the checkpoint has beyond the text model is split over TP as encoders are.
    model = facts(config, checkpoint_bytes=text + 4_000_000)
    assert weight_bytes(model, loaded=False).rank_bytes == text + 4_000_000
    half = rank(DENSE, tensor_parallel_size=2) + 2_000_000
    # The computed whole counts padded vocabulary rows as well, so nothing else is left.
    two = weight_bytes(model, tensor_parallel_size=2, loaded=False)
    assert two.rank_bytes == half
    alone = weight_bytes(model, language_model_only=True, loaded=False)
    assert alone.rank_bytes == text
