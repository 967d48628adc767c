"""Prefill context parallelism: more ranks, the same cache, experts over all of them."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, NotModelledError

LATENT = "deepseek-ai/DeepSeek-V3"
SPARSE = "deepseek-ai/DeepSeek-V3.2"


def sized(model: str, **args: Any) -> Any:
    return size(model, gpu="b200", tensor_parallel_size=4, **args)


def test_the_cache_is_that_without_it_and_experts_are_cut_over_all_ranks() -> None:
    with_it = sized(LATENT, prefill_context_parallel_size=2, num_gpu_blocks_override=9000)
    without = sized(LATENT, num_gpu_blocks_override=9000)
    assert with_it.figures.capacity == without.figures.capacity
    assert with_it.settings.ranks == 8
    assert any("--prefill-context-parallel-size" in a.text for a in with_it.assumptions)
    # 58 sparse layers x 256 experts x 3 matrices of 7168 x 2048 in FP8 with an FP32 scale for
    # each block of 128 x 128: 4 ranks hold a quarter of them, 8 an eighth. (A rank's 512 or 256 of
    # 2048 are whole blocks.)
    experts = 58 * 256 * 3 * (7168 * 2048 + 4 * 56 * 16)
    saved = without.figures.budget.weights.value - with_it.figures.budget.weights.value
    assert saved == experts // 4 - experts // 8


@pytest.mark.parametrize(
    ("model", "args"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", {}),  # no latent cache
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {}),
        ("moonshotai/Kimi-K2.5", {}),  # takes images
        (LATENT, {"enable_lora": True}),
        (LATENT, {"decode_context_parallel_size": 2}),  # dense attention
        (LATENT, {"decode_context_parallel_size": 4}),  # neither 1, PCP nor TP x PCP
        ("deepseek-ai/DeepSeek-V4-Flash", {}),  # CUDA graphs
    ],
)
def test_what_vllm_refuses(model: str, args: dict[str, Any]) -> None:
    with pytest.raises(InfeasibleError):
        sized(model, prefill_context_parallel_size=2, **args)


def test_graphs_of_sparse_attention_came_with_0_33() -> None:
    given = {"prefill_context_parallel_size": 2, "num_gpu_blocks_override": 9000}
    assert sized(SPARSE, **given).figures.capacity.tokens
    assert sized(SPARSE, vllm_version="0.32.0", enforce_eager=True, **given).figures.capacity.tokens
    with pytest.raises(InfeasibleError, match="CUDA graphs"):
        sized(SPARSE, vllm_version="0.32.0", **given)


def test_beside_decode_context_parallelism_it_is_not_modelled() -> None:
    with pytest.raises(NotModelledError):
        sized(SPARSE, prefill_context_parallel_size=2, decode_context_parallel_size=2)
