"""Keys, variants and towers of families that are laid out otherwise, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind

HERE = Source(SourceKind.LOCAL, "config.json")
TEXT: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
AUDIO: dict[str, Any] = {
    "d_model": 128,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 512,
    "encoder_layers": 2,
    "num_mel_bins": 80,
    "max_source_positions": 100,
}


def facts(config: dict[str, Any]) -> ModelFacts:
    return model_facts("org/model", {"dtype": "bfloat16", **config}, source=HERE)


def tower(config: dict[str, Any], tp: int) -> int:
    """Parameters a rank holds beyond the text model's."""
    model = facts(config)
    sizes = [
        weight_bytes(model, tensor_parallel_size=tp, language_model_only=text).rank_bytes
        for text in (False, True)
    ]
    return (sizes[0] - sizes[1]) // 2


def test_ultravox_cuts_its_tower() -> None:
    config = {
        "architectures": ["UltravoxModel"],
        "text_config": TEXT,
        "audio_config": AUDIO,
        "hidden_size": 256,
        "stack_factor": 8,
        "projector_act": "swiglu",
        "projector_ln_mid": True,
    }
    split = 2 * (4 * 128 * 128 + 2 * 128 * 512 + 3 * 128 + 512)
    whole = 2 * (2 * 128 + 2 * 2 * 128) + 3 * 128 * (80 + 128) + 2 * 128 + 100 * 128 + 2 * 128
    projector = 8 * 128 + 8 * 128 * 256 + 128 * 256 + 128
    assert tower(config, 1) == split + whole + projector
    assert tower(config, 2) == split // 2 + whole + projector


def test_qwen2_audio_holds_its_tower_on_every_rank() -> None:
    config = {
        "architectures": ["Qwen2AudioForConditionalGeneration"],
        "text_config": TEXT,
        "audio_config": AUDIO,
    }
    layer = 4 * 128 * 128 + 3 * 128 + 2 * 128 * 512 + 512 + 128 + 2 * 2 * 128  # keys have no bias
    whole = 2 * layer + 3 * 128 * (80 + 128) + 2 * 128 + 100 * 128 + 2 * 128 + 128 * 256 + 256
    assert tower(config, 1) == tower(config, 2) == whole


def test_a_tower_that_is_not_known_is_said() -> None:
    config = {
        "architectures": ["LlavaForConditionalGeneration"],
        "text_config": TEXT,
        "vision_config": {"model_type": "dinov9", "num_hidden_layers": 2, "hidden_size": 64},
    }
    assert "encoders-not-counted" in {a.id for a in facts(config).assumptions}


def test_a_wrapper_has_the_layers_of_its_text_model() -> None:
    config = {"architectures": ["UltravoxModel"], "text_config": TEXT}
    plain = facts({"architectures": ["LlamaForCausalLM"], **TEXT})
    assert facts(config).kv_cache == plain.kv_cache
    with pytest.raises(NotModelledError, match="odd"):
        facts({**config, "text_config": {**TEXT, "model_type": "odd"}})


def test_what_the_config_says_of_the_whole_wins_about_tying() -> None:
    config = {"architectures": ["UltravoxModel"], "text_config": TEXT}
    tied = facts({**config, "tie_word_embeddings": True})
    one = facts(config).weights.total_params - tied.weights.total_params
    assert one == 1024 * 256


def test_keys_that_a_family_calls_otherwise() -> None:
    gpt2 = facts(
        {
            "architectures": ["GPT2LMHeadModel"],
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 128,
            "vocab_size": 640,
        }
    )
    assert (gpt2.num_hidden_layers, gpt2.head_dim, gpt2.max_position_embeddings) == (2, 16, 128)
    # An MLP of four times the width; norms with biases; learned positions; a tied head.
    layer = 4 * 64 * 64 + 4 * 64 + 8 * 64 * 64 + 5 * 64 + 4 * 64
    assert gpt2.weights.total_params == 2 * layer + (640 + 128) * 64 + 2 * 64


def test_bloom_has_as_many_parameters_as_published() -> None:
    bloom = facts(
        {
            "architectures": ["BloomForCausalLM"],
            "hidden_size": 4096,
            "n_layer": 30,
            "num_attention_heads": 32,
            "vocab_size": 250880,
        }
    )
    assert bloom.weights.total_params == 7_069_016_064  # bigscience/bloom-7b1


@pytest.mark.parametrize(("new", "heads"), [(False, 1), (True, 8)])
def test_a_variant_of_a_family(new: bool, heads: int) -> None:
    falcon = facts(
        {
            "architectures": ["FalconForCausalLM"],
            "hidden_size": 512,
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "num_kv_heads": 8,
            "multi_query": True,
            "new_decoder_architecture": new,
            "parallel_attn": True,
            "vocab_size": 640,
        }
    )
    assert {s.num_kv_heads for s in falcon.cache_specs} == {heads}


def test_a_variant_that_is_not_understood_is_refused() -> None:
    with pytest.raises(NotModelledError, match="do_layer_norm_before"):
        facts(
            {
                "architectures": ["OPTForCausalLM"],
                **TEXT,
                "ffn_dim": 512,
                "do_layer_norm_before": False,
            }
        )
