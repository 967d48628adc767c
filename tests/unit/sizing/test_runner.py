"""Models that pool, encoders that cache nothing, encoder-decoder models: computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor import check, size
from vllm_advisor.api.planning import plan
from vllm_advisor.api.runner import chunks_prefill, served_model
from vllm_advisor.api.sizing import SizeReport
from vllm_advisor.errors import AdvisorError, InfeasibleError, InputError, NotModelledError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.text_config import usual_keys
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.runner import Runner
from vllm_advisor.types.source import Source, SourceKind

HERE = Source(SourceKind.LOCAL, "config.json")
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "dtype": "float32",
    "id2label": {"0": "a", "1": "b", "2": "c"},
}
BERT: dict[str, Any] = {
    "architectures": ["BertModel"],
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_attention_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "dtype": "float32",
}
WHISPER: dict[str, Any] = {
    "architectures": ["WhisperForConditionalGeneration"],
    "d_model": 128,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 512,
    "decoder_ffn_dim": 512,
    "num_mel_bins": 80,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "vocab_size": 1000,
    "is_encoder_decoder": True,
    "dtype": "float16",
}


def facts(config: dict[str, Any]) -> ModelFacts:
    return model_facts("org/model", config, source=HERE)


def sized(config: dict[str, Any], folder: Path, **args: Any) -> SizeReport:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return size(str(folder), gpu="h100-sxm", **args)


def rank(model: ModelFacts, **how: Any) -> int:
    return weight_bytes(model, **{"loaded": False, **how}).rank_bytes


def test_cross_attention_keeps_room_for_a_whole_batch(tmp_path: Path) -> None:
    report = sized(WHISPER, tmp_path, max_num_batched_tokens=1600, max_num_seqs=8)
    groups = report.to_dict()["kv_cache"]["groups"]
    # 448 / 16 = 28 blocks of its own, 1,600 / 16 = 100 of the encoder's states, whatever the 1,500
    # of an item; a page has 2 (K and V) x 16 tokens x 128 elements x 2 bytes.
    assert [(g["kind"], g["blocks_per_request"], g["page_size_bytes"]) for g in groups] == [
        ("full_attention", 28, 8192),
        ("cross_attention", 100, 8192),
    ]
    capacity = report.figures.capacity
    assert capacity.max_concurrency == capacity.num_gpu_blocks / 128
    assert not report.settings.prefix_caching


def test_whisper_weights() -> None:
    attention, mlp = 4 * 128 * 128 + 4 * 128, 2 * 128 * 512 + 512 + 128
    encoder_layer = attention + mlp + 2 * 2 * 128
    encoder = 3 * encoder_layer + 3 * 128 * (80 + 128) + 2 * 128 + 1500 * 128 + 2 * 128
    decoder = 2 * (2 * attention + mlp + 3 * 2 * 128) + (1000 + 448) * 128 + 2 * 128
    assert rank(facts(WHISPER)) == 2 * (encoder + decoder)


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ({"max_num_batched_tokens": 1024, "max_num_seqs": 8}, "max_tokens_per_mm_item (1500)"),
        ({"max_num_seqs": 2}, "max_num_batched_tokens (896)"),  # 2 x 448
        ({"pipeline_parallel_size": 2}, "Pipeline parallelism"),
    ],
)
def test_what_vllm_refuses_of_whisper(args: dict[str, Any], word: str, tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError) as refused:
        sized(WHISPER, tmp_path, **args)
    assert word in refused.value.what


def test_an_encoder_caches_nothing(tmp_path: Path) -> None:
    report = sized(BERT, tmp_path)
    data = report.to_dict()
    assert data["kv_cache"]["groups"] == []
    assert data["kv_cache"]["num_gpu_blocks"] == 1
    assert data["kv_cache"]["tokens"] is data["kv_cache"]["max_concurrency"] is None
    assert data["memory"]["kv_cache"] == 0
    assert data["fits"]
    assert data["max_model_len"]["configured"] == 512
    assert any("allocates no KV cache" in text for text in data["assumptions"])


def test_encoder_weights_and_head() -> None:
    # Tables of tokens, positions and types are padded to multiples of 64 and cut by TP.
    tables = (1024 + 512 + 64) * 128
    layer = 4 * 128 * 128 + 4 * 128 + 2 * 128 * 512 + 512 + 128 + 2 * 2 * 128
    assert rank(facts(BERT)) == 2 * (tables + 2 * 128 + 2 * layer)
    classes = {**BERT, "architectures": ["BertForSequenceClassification"], "num_labels": 3}
    head = 128 * 128 + 128 + 3 * 128 + 3  # in FP32
    assert rank(facts(classes)) - rank(facts(BERT)) == 4 * head


def test_a_pooling_model_has_no_output_head() -> None:
    generating = facts(LLAMA)
    assert generating.dtype == "bfloat16"
    pooling = served_model(generating, {"runner": "pooling"})
    assert pooling.dtype == "float16"  # what --dtype auto makes of FP32 when it pools
    assert rank(generating) - rank(pooling) == 2 * 1024 * 256
    classifier = served_model(generating, {"convert": "classify"})
    assert classifier.runner is Runner.POOLING
    assert rank(classifier) - rank(pooling) == 4 * 3 * 256


def test_a_class_that_pools_is_found_by_the_one_that_generates() -> None:
    reward = facts({**LLAMA, "architectures": ["LlamaForSequenceClassification"]})
    assert reward.runner is Runner.POOLING
    assert served_model(reward, {}).cache_specs == facts(LLAMA).cache_specs
    back = served_model(reward, {"runner": "generate"})
    assert back.runner is Runner.GENERATE
    assert rank(back) == rank(facts(LLAMA))


@pytest.mark.parametrize(
    ("pooling", "whole"), [("LAST", False), ("ALL", False), ("MEAN", True), ("CLS", True)]
)
def test_pooling_of_the_whole_prompt_needs_one_step(
    pooling: str, whole: bool, tmp_path: Path
) -> None:
    config = {**LLAMA, "max_position_embeddings": 32768}
    args = {"runner": "pooling", "pooler_config": {"pooling_type": pooling}}
    report = sized(config, tmp_path, **args)
    assert report.settings.max_num_batched_tokens == (32768 if whole else 8192)
    assert report.settings.prefix_caching is not whole
    assert report.settings.in_flight_tokens == report.settings.max_num_batched_tokens


def test_bidirectional_attention_of_a_decoder_caches_nothing() -> None:
    model = served_model(facts({**LLAMA, "is_causal": False}), {"runner": "pooling"})
    assert model.cache_specs == ()
    assert not chunks_prefill(model)


@pytest.mark.parametrize(
    ("config", "args", "error"),
    [
        (BERT, {"runner": "generate"}, InfeasibleError),
        (LLAMA, {"runner": "generate", "convert": "embed"}, InfeasibleError),
        (LLAMA, {"runner": "pooling", "convert": "none"}, InfeasibleError),
        (LLAMA, {"runner": "draft"}, NotModelledError),
        (LLAMA, {"runner": "server"}, InputError),
        (LLAMA, {"runner": "pooling", "pooler_config": {"pooling_type": "SUM"}}, InputError),
    ],
)
def test_what_is_no_runner(
    config: dict[str, Any], args: dict[str, Any], error: type[AdvisorError]
) -> None:
    with pytest.raises(error):
        served_model(facts(config), args)


def test_a_class_that_is_not_known_to_cache_is_refused() -> None:
    with pytest.raises(NotModelledError, match="missing"):
        facts({**LLAMA, "architectures": ["SomethingForRetrieval"]})


def test_plans_are_for_decoders_that_generate(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT), encoding="utf-8")
    workload = tmp_path / "workload.yaml"
    workload.write_text(
        f"model: {tmp_path}\nhardware: {{gpu: l4, count: 1}}\nclasses:\n  - name: chat\n"
        "    prompt_tokens: {p50: 100, p95: 200, max: 300}\n"
        "    output_tokens: {p50: 10, p95: 20, max: 30}\n    concurrent_requests: 1\n",
        encoding="utf-8",
    )
    with pytest.raises(NotModelledError, match="decoders that generate"):
        plan(workload)


@given(
    st.dictionaries(
        st.sampled_from(["max_position_embeddings", "n_positions", "seq_length"]),
        st.integers(1, 1 << 20),
        min_size=1,
    )
)
def test_the_shortest_length_holds(lengths: dict[str, int]) -> None:
    assert usual_keys(None, lengths)["max_position_embeddings"] == min(lengths.values())


def test_check_finds_nothing_wrong_with_a_model_that_caches_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT), encoding="utf-8")
    report = check(["vllm", "serve", str(tmp_path)], gpu="l4").to_dict()
    assert report["findings"] == []
