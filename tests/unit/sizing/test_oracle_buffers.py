"""Buffers (RoPE tables, scales, expert maps) against those that vLLM 0.33.0's own modules hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from oracle_rows import CONFIGS, NOT_MODELLED, ROWS, resolved

from vllm_advisor.sizing.budget import instance_weights
from vllm_advisor.types.model import ModelFacts, WeightFacts

# What the count leaves out, by architecture: at most so many bytes, of what.
_NUMBERS = "single numbers: the embedding's scale, each layer's scalar, the activation's"
_IDS = "position ids"
_TOWER = "position ids and RoPE tables of a tower"
_VIEWS = "the convolution's weights in another shape, which are no copy of them"
_MB = 10**6
LEFT_OUT = {
    "ApertusForCausalLM": (128, _NUMBERS),
    "BertForMaskedLM": (4096, _IDS),
    "BertForSequenceClassification": (4096, _IDS),
    "BertForTokenClassification": (4096, _IDS),
    "BertModel": (4096, _IDS),
    "Cohere2VisionForConditionalGeneration": (8192, _TOWER),
    "FalconH1ForCausalLM": (0.6 * _MB, f"{_VIEWS}; the multipliers of its projections"),
    "Gemma2ForCausalLM": (2, _NUMBERS),
    "Gemma3ForCausalLM": (2, _NUMBERS),
    "Gemma3ForConditionalGeneration": (2 + 32768, _TOWER),
    "Gemma3TextModel": (2, _NUMBERS),
    "Gemma3nForCausalLM": (78, _NUMBERS),
    "Gemma4ForConditionalGeneration": (4874, _TOWER),
    "GemmaForCausalLM": (2, _NUMBERS),
    "Glm4vForConditionalGeneration": (1.1 * _MB, _TOWER),
    "Glm4vMoeForConditionalGeneration": (1.1 * _MB, _TOWER),
    "GlmAsrForConditionalGeneration": (64, _TOWER),
    "GraniteMoeHybridForCausalLM": (2.3 * _MB, _VIEWS),
    "GraniteSpeechForConditionalGeneration": (131_200, _TOWER),
    "KimiK25ForConditionalGeneration": (18_432, _TOWER),
    "KimiK3ForConditionalGeneration": (41 * _MB, "copies of convolutions for some decode kernels"),
    "Llama4ForConditionalGeneration": (196_800, _TOWER),
    "LlavaForConditionalGeneration": (4616, _TOWER),
    "LlavaOnevisionForConditionalGeneration": (5832, _TOWER),
    "MiniMaxM3SparseForConditionalGeneration": (156, _TOWER),
    "Mistral3ForConditionalGeneration": (256, _TOWER),
    "NemotronHForCausalLM": (7.1 * _MB, _VIEWS),
    "PaliGemmaForConditionalGeneration": (2050, _TOWER),
    "Phi3VForCausalLM": (4616, _TOWER),
    "Qwen2VLForConditionalGeneration": (655_360, _TOWER),
    "Qwen2_5OmniModel": (8.4 * _MB, _TOWER),
    "Qwen2_5_VLForConditionalGeneration": (655_360, _TOWER),
    "Qwen3ASRForConditionalGeneration": (6.2 * _MB, _TOWER),
    "Qwen3OmniMoeForConditionalGeneration": (8.3 * _MB, _TOWER),
    "Qwen3VLForConditionalGeneration": (589_824, _TOWER),
    "Qwen3VLMoeForConditionalGeneration": (589_824, _TOWER),
    "Qwen3_5ForConditionalGeneration": (589_824, _TOWER),
    "Qwen3_5MoeForConditionalGeneration": (589_824, _TOWER),
    "VaultGemmaForCausalLM": (2, _NUMBERS),
    "VoxtralForConditionalGeneration": (102_912, _TOWER),
    "XLMRobertaForSequenceClassification": (65_552, _IDS),
    "XLMRobertaModel": (65_552, _IDS),
    "Zamba2ForCausalLM": (2.3 * _MB, _VIEWS),
}
OTHER_QUESTIONS = {
    "neg:fp32": "weights in FP32 are refused",
    "gen": "a classifier that is to generate goes through the Transformers backend, without a table",
}


def architecture(row: dict[str, Any]) -> str:
    return str(CONFIGS[row["model"]]["config"]["architectures"][0])


def only_buffers(model: ModelFacts) -> ModelFacts:
    parts = tuple(
        part
        for part in model.weights.components
        if part.after_loading and part.name != "mla_absorbed"
    )
    return replace(model, weights=WeightFacts(components=parts, source=model.source))


def buffers(row: dict[str, Any]) -> int:
    """Of the fullest rank."""
    model, found = resolved(row)
    settings = replace(found.settings, speculation=None, offload=None)
    return instance_weights(only_buffers(model), settings).rank_bytes


def taking_part() -> list[dict[str, Any]]:
    return [r for r in ROWS if r["ok"] and r["tag"] not in {*NOT_MODELLED, *OTHER_QUESTIONS}]


@pytest.mark.parametrize("name", sorted({row["model"] for row in taking_part()}))
def test_buffers_of_the_fullest_rank(name: str) -> None:
    for row in (row for row in taking_part() if row["model"] == name):
        most, _ = LEFT_OUT.get(architecture(row), (0, ""))
        missed = max(row["buffers"]) - buffers(row)
        assert 0 <= missed <= most, row["tag"]


def test_what_is_left_out_is_needed_and_small() -> None:
    """No entry is stale, and each is less than a thousandth of a GPU's memory."""
    exact = {architecture(row) for row in taking_part()} - set(LEFT_OUT)
    assert len(exact) >= 90
    assert set(LEFT_OUT) <= {architecture(row) for row in taking_part()}
    assert max(most for most, _ in LEFT_OUT.values()) < 80e9 / 1000


def test_longer_context_by_override() -> None:
    """Llama-2-7B's 2,048 positions x 128 x 2 bytes, stretched by YaRN to 8,192; its 32 x 4 scales."""
    row = {"model": "Llama-2-7B", "engine_args": {}, "gpu": "h100", "tag": ""}
    assert buffers(row) == 2048 * 128 * 2 + 32 * 4 * 4
    rope = {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 2048,
        "rope_theta": 1e4,
    }
    overrides = {"rope_parameters": rope, "max_position_embeddings": 8192}
    assert buffers({**row, "engine_args": {"hf_overrides": overrides}}) == (
        math.ceil(2048 * 4.0) * 128 * 2 + 32 * 4 * 4
    )
