"""What quantization configs say of single modules, and the bytes that follow."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.quantization import quantization_facts
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.source import Confidence, Source, SourceKind

HERE = Source(SourceKind.LOCAL, "config.json")
MODEL: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 640,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 32,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}
ATTENTION = 4 * 256 * 256
MLP = 3 * 256 * 640
IN_16_BITS = 2 * (1024 * 256 + 256 + 4 * 2 * 256)  # embedding and norms


def rank(quantization: dict[str, Any], **how: Any) -> int:
    config = {**MODEL, "quantization_config": quantization}
    model = model_facts("org/model", config, source=HERE)
    return weight_bytes(model, **{"loaded": False, **how}).rank_bytes


def nvfp4(**more: Any) -> dict[str, Any]:
    return {"quant_method": "modelopt", "quant_algo": "NVFP4", **more}


def test_nvfp4() -> None:
    # 4 bits and an FP8 scale for 16 weights: 4.5 bits.
    assert rank(nvfp4()) == IN_16_BITS + 4 * (ATTENTION + MLP) * 45 // 80


@pytest.mark.parametrize(
    "ignore",
    [
        ["*.self_attn*", "lm_head"],
        ["model.layers.*.self_attn*"],
        [f"model.layers.{i}.self_attn.{p}_proj" for i in range(4) for p in "qkvo"],
        [f"model.layers.{i}.self_attn*" for i in range(4)],
    ],
)
def test_attention_left_out_in_any_spelling(ignore: list[str]) -> None:
    found = rank(nvfp4(ignore=ignore))
    assert found == IN_16_BITS + 4 * (2 * ATTENTION + MLP * 45 // 80)


def test_single_layers_left_out() -> None:
    # Layer 3, but not layers 30 to 39, of which this model has none; layer 1 with its dot.
    ignore = ["model.layers.3*", "model.layers.1.*"]
    half = 2 * (ATTENTION + MLP) * 45 // 80
    assert rank(nvfp4(exclude_modules=ignore)) == IN_16_BITS + half + 2 * 2 * (ATTENTION + MLP)


def test_each_module_in_a_format_of_its_own() -> None:
    layers = {
        f"model.layers.{i}.mlp.{p}_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}
        for i in range(4)
        for p in ("gate", "up", "down")
    }
    layers |= {f"model.layers.{i}.self_attn.q_proj": {"quant_algo": "FP8"} for i in range(4)}
    found = rank(nvfp4(quant_algo="MIXED_PRECISION", quantized_layers=layers))
    query, others = 256 * 256, 3 * 256 * 256
    assert found == IN_16_BITS + 4 * (MLP * 45 // 80 + query + 2 * others)


def test_a_quantized_head() -> None:
    mixed = nvfp4(
        quant_algo="MIXED_PRECISION", quantized_layers={"lm_head": {"quant_algo": "NVFP4"}}
    )
    config = {**MODEL, "tie_word_embeddings": False, "quantization_config": mixed}
    model = model_facts("org/model", config, source=HERE)
    head = 1024 * 256 * 45 // 80
    expected = IN_16_BITS + head + 4 * 2 * (ATTENTION + MLP)
    assert weight_bytes(model, loaded=False).rank_bytes == expected


def test_fp8_blocks_are_counted_whole() -> None:
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    # 256 x 256 has 2 x 2 blocks, 640 x 256 has 5 x 2: FP32 scales.
    scales = 4 * (4 * 4 + 3 * 10)
    assert rank(block) == IN_16_BITS + 4 * (ATTENTION + MLP + scales)
    # TP 2 leaves 320 rows of an MLP matrix: 2.5 blocks, held as 3.
    scales = 4 * (4 * 2 + 3 * 3 * 2)
    ranks = 2 * (512 * 256 + 256 + 4 * 2 * 256) + 4 * ((ATTENTION + MLP) // 2 + scales)
    assert rank(block, tensor_parallel_size=2) == ranks


def test_compressed_tensors_regular_expressions() -> None:
    quantization = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32}}
        },
        "ignore": ["lm_head", "re:.*self_attn.*"],
    }
    # A 16-bit scale for 32 weights: 4.5 bits.
    assert rank(quantization) == IN_16_BITS + 4 * (2 * ATTENTION + MLP * 45 // 80)


def test_formats_that_are_not_known() -> None:
    with pytest.raises(NotModelledError, match="spqr"):
        quantization_facts({"quantization_config": {"quant_method": "spqr"}}, None)
    config = {**MODEL, "quantization_config": {"quant_method": "spqr"}}
    model = model_facts("org/model", config, source=HERE, checkpoint_bytes=1_000_000)
    lowered = [a.id for a in model.assumptions if a.lowers_to is Confidence.LOW]
    assert lowered == ["quantization-not-modelled"]
    assert weight_bytes(model, loaded=False).rank_bytes == pytest.approx(1_000_000, abs=1)
