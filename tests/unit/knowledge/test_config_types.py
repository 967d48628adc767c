"""What transformers and vLLM refuse of a config, and the head size that some classes derive."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}


def facts(**keys: Any) -> ModelFacts:
    return model_facts("m", BASE | keys, source=Source(SourceKind.LOCAL, "m"))


@pytest.mark.parametrize(
    "keys",
    [
        {"attention_bias": None},
        {"tie_word_embeddings": None},
        {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
         "num_local_experts": 8, "num_key_value_heads": None},
        {"layer_types": ["full_attention"] * 3},  # of 4 layers
    ],
)  # fmt: skip
def test_transformers_refuses(keys: dict[str, Any]) -> None:
    with pytest.raises(InfeasibleError):
        facts(**keys)


def test_nulls_that_mean_the_default() -> None:
    """Llama's class takes them: 8 KV heads for 8 heads, 1024 / 8 elements each."""
    model = facts(num_key_value_heads=None, head_dim=None)
    assert (model.num_key_value_heads, model.head_dim) == (8, 128)


def test_a_config_class_that_is_not_transformers_is_not_judged() -> None:
    assert facts(model_type="somebodys-own", attention_bias=None).num_hidden_layers == 4


def test_head_dim_that_a_class_does_not_read() -> None:
    """Qwen2 divides 1024 by 8 whatever head_dim says; Llama and Qwen3 read it."""
    assert facts(head_dim=64).head_dim == 64
    qwen = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
    assert facts(**qwen, head_dim=64).head_dim == 128


def test_heads_that_do_not_divide() -> None:
    with pytest.raises(InfeasibleError, match="not divisible"):
        check_parallelism(facts(num_key_value_heads=3), tensor_parallel_size=1)


def length(model: ModelFacts, **args: Any) -> int:
    found = resolve_settings(model, load_engine("0.33.0"), None, args)
    return found.settings.max_model_len


def test_no_window_where_the_class_needs_one() -> None:
    """vLLM writes null for the window it leaves out; CWM's class refuses that."""
    mistral = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    assert length(facts(**mistral, sliding_window=512), disable_sliding_window=True) == 512
    strict = {"architectures": ["CwmForCausalLM"], "model_type": "cwm"}
    with pytest.raises(InfeasibleError, match="sliding_window"):
        length(facts(**strict, sliding_window=512), disable_sliding_window=True)


def test_chunks_are_no_window() -> None:
    """Llama 4's chunks stay when windows are left out, and do not shorten the context."""
    llama4 = facts(
        architectures=["Llama4ForCausalLM"],
        model_type="llama4_text",
        attention_chunk_size=2048,
        num_local_experts=4,
        interleave_moe_layer_step=1,
        intermediate_size_mlp=4096,
    )
    assert length(llama4, disable_sliding_window=True) == 8192


def test_without_attention_any_length() -> None:
    mamba = model_facts(
        "m",
        {
            "architectures": ["FalconMambaForCausalLM"],
            "model_type": "falcon_mamba",
            "num_hidden_layers": 4,
            "hidden_size": 1024,
            "intermediate_size": 2048,
            "state_size": 16,
            "conv_kernel": 4,
            "time_step_rank": 64,
            "vocab_size": 32000,
        },
        source=Source(SourceKind.LOCAL, "m"),
    )
    assert length(mamba) == 2048
    assert length(mamba, max_model_len=16384) == 16384


def test_encoders_do_without_the_hybrid_manager() -> None:
    bert = facts(architectures=["BertModel"], model_type="bert")
    args = {"disable_hybrid_kv_cache_manager": True}
    settings = resolve_settings(bert, load_engine("0.33.0"), None, args).settings
    assert cache_layout(bert, settings).groups == ()


def test_what_a_class_fills_in() -> None:
    """Left out: Gemma's heads have 256 elements, Ministral 3 has 8 KV heads; null is no default."""
    gemma = facts(architectures=["GemmaForCausalLM"], model_type="gemma")
    assert gemma.head_dim == 256
    ministral = {"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3"}
    config = {k: v for k, v in BASE.items() if k != "num_key_value_heads"} | ministral
    model = model_facts("m", config, source=Source(SourceKind.LOCAL, "m"))
    assert (model.num_key_value_heads, model.head_dim) == (8, 128)


def test_only_qwens_switch_the_window_off() -> None:
    """Llama's layers take the window whatever use_sliding_window says: not modelled, so refused."""
    with pytest.raises(NotModelledError, match="sliding_window"):
        facts(sliding_window=512, use_sliding_window=False)
    qwen = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
    assert not any(s.window for s in facts(**qwen, sliding_window=512).cache_specs)


@pytest.mark.parametrize(
    "keys",
    [
        {"num_key_value_heads": "many"},
        {"rope_scaling": "yarn"},
        {"num_hidden_layers": 10**12},
        {"num_hidden_layers": -1},
        {"max_position_embeddings": 0},
        {"num_attention_heads": 0},
        {"max_position_embeddings": {"a": 1}},
        {"architectures": {"a": 1}},
    ],
)
def test_values_that_cannot_be_read(keys: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"config\.json of m"):
        facts(**keys)
