"""What a step reads and computes, from published dimensions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from latency_stations import station

from vllm_advisor.api.models import find_model
from vllm_advisor.api.sizing import size
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.step_work import StepWork, WeightFormat, step_work


def work(model: str, gpu: str, **args: object) -> StepWork:
    return station(model, gpu, prompt=100, output=10, **args).work


def test_llama_8b() -> None:
    found = work("llama-3.1-8b-instruct", "h100-sxm")
    # A layer: q and o 2 x 4,096^2, k and v 2 x 4,096 x 1,024, MLP 3 x 4,096 x 14,336.
    attention = 32 * (2 * 4096**2 + 2 * 4096 * 1024)
    mlp = 32 * 3 * 4096 * 14336
    head, norms = 128_256 * 4096, (2 * 32 + 1) * 4096
    assert found.weight_bytes == 2 * (attention + mlp + head + norms) == 15_009_849_344
    # 2 flops for each parameter, at the BF16 peak of 989.4 TFLOPS or so.
    assert found.dense_seconds == pytest.approx(2 * (attention + mlp) / found.peak)
    assert found.head_seconds == pytest.approx(2 * head / found.peak)
    # 32 layers x 2 x 8 heads x 128 x 2 B, all of the context.
    assert [(r.window, r.bytes_per_token) for r in found.cache] == [(None, 131_072)]
    # Score and value: 2 flops x 32 heads x (128 + 128), in 32 layers.
    assert found.attention_flops == 32 * 2 * 32 * 256
    assert found.decode_flops == 0
    assert (found.layers, found.expert_layers, found.ranks) == (32, 0, 1)
    assert found.dense_format is WeightFormat.PLAIN


def test_two_ranks_have_half_each() -> None:
    one, two = (work("llama-3.1-8b-instruct", "h100-sxm", tensor_parallel_size=tp) for tp in (1, 2))
    assert two.dense_seconds == pytest.approx(one.dense_seconds / 2)
    assert two.head_seconds == pytest.approx(one.head_seconds / 2)
    assert two.attention_flops == one.attention_flops / 2
    assert two.cache[0].bytes_per_token == one.cache[0].bytes_per_token / 2
    # Norms, 65 x 4,096 x 2 B, are on both ranks.
    assert 2 * two.weight_bytes - one.weight_bytes == 65 * 4096 * 2
    # Hidden states of 2 B are summed after attention and after the MLP.
    assert (two.ranks, two.reduces, two.reduced_bytes) == (2, 64, 8192)


def test_experts_of_qwen3_30b() -> None:
    found = work("qwen3-30b-a3b", "h100-sxm")
    # 48 layers x 128 experts x 3 x 2,048 x 768, 8 of 128 for each token.
    experts = 48 * 128 * 3 * 2048 * 768
    assert found.expert_bytes == 2 * experts
    assert found.expert_seconds == pytest.approx(2 * experts * 8 / 128 / found.peak)
    assert (found.experts, found.experts_per_token, found.expert_layers) == (128, 8, 48)
    assert found.expert_format is WeightFormat.PLAIN


def test_latent_attention_of_deepseek_v2_lite() -> None:
    found = work("deepseek-v2-lite", "a100-sxm4-80")
    # 27 layers x (512 + 64) x 2 B.
    assert [(r.window, r.bytes_per_token) for r in found.cache] == [(None, 27 * 576 * 2)]
    # Decoding multiplies 16 heads with latents of 576, twice, 2 flops each.
    assert found.decode_flops == 27 * 2 * 16 * 2 * 576


def test_the_window_of_gemma() -> None:
    found = work("gemma-3-27b-it", "h200-sxm")
    # Of 62 layers each sixth sees everything: 10; 52 look 1,024 tokens back.
    # 2 x 16 heads x 128 x 2 B = 8,192 B per layer.
    reads = {r.window: r.bytes_per_token for r in found.cache}
    assert reads == {None: 10 * 8192, 1024: 52 * 8192}
    assert {window for window, _ in found.window_flops} == {1024}
    assert len(found.window_flops) == 52


def test_formats_by_gpu() -> None:
    assert work("gpt-oss-120b", "b200").expert_format is WeightFormat.FP4
    assert work("gpt-oss-120b", "h100-sxm", tensor_parallel_size=2).expert_format is (
        WeightFormat.FP4
    )
    old = work("gpt-oss-120b", "a100-sxm4-80", tensor_parallel_size=2)
    assert old.expert_format is WeightFormat.INT4
    # 16-bit arithmetic there, 8-bit on Blackwell.
    new = work("gpt-oss-120b", "b200", tensor_parallel_size=2)
    gpus = find_gpu("a100-sxm4-80"), find_gpu("b200")
    assert gpus[0].bf16_flops is not None
    assert gpus[1].fp8_flops is not None
    ratio = gpus[1].fp8_flops / gpus[0].bf16_flops
    assert old.expert_seconds / new.expert_seconds == pytest.approx(ratio)


def test_a_gpu_without_its_peak_is_refused() -> None:
    settings = size("llama-3.1-8b-instruct", gpu="h100-sxm").settings
    facts = find_model("llama-3.1-8b-instruct")
    gpu = replace(find_gpu("h100-sxm"), bf16_flops=None)
    with pytest.raises(NotModelledError, match="arithmetic peak"):
        step_work(facts, settings, gpu, cache_layout(facts, settings))
