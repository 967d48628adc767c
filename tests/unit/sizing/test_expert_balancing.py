"""EPLB's copies of experts, and towers that every rank holds whole."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, NotModelledError

MOE = "Qwen/Qwen3-235B-A22B"
ON = {"tensor_parallel_size": 8, "enable_expert_parallel": True, "enable_eplb": True}
# 94 layers; an expert is 3 matrices of 4,096 x 1,536 in 16 bits.
LAYERS, EXPERT = 94, 3 * 4096 * 1536 * 2


def weights(model: str = MOE, **args: Any) -> int:
    report = size(model, gpu="h200-sxm", **args)
    assert report.figures.budget is not None
    return int(report.figures.budget.weights.value)


def test_copies_are_spread_over_ranks_and_one_layer_is_kept_to_move_them() -> None:
    # 128 experts over 8 ranks are 16 each; with 32 copies 20.
    without = weights(tensor_parallel_size=8, enable_expert_parallel=True)
    assert weights(**ON) == without + 16 * EXPERT
    copies = weights(**ON, eplb_config={"num_redundant_experts": 32})
    # Each layer's map names 32 experts more, in 4 bytes.
    maps = 32 * 4 * LAYERS
    assert copies == without + 4 * EXPERT * LAYERS + 20 * EXPERT + maps


@pytest.mark.parametrize(
    "args",
    [
        {**ON, "eplb_config": {"num_redundant_experts": 3}},  # 131 over 8
        {"tensor_parallel_size": 8, "enable_eplb": True},
        {"enable_expert_parallel": True, "enable_eplb": True},
        {"tensor_parallel_size": 8, "eplb_config": {"num_redundant_experts": 8}},
    ],
)
def test_what_vllm_refuses(args: dict[str, Any]) -> None:
    with pytest.raises(InfeasibleError):
        weights(**args)


def test_gpt_oss_is_refused_and_other_classes_are_not_known() -> None:
    with pytest.raises(InfeasibleError, match="EPLB is not supported"):
        weights("openai/gpt-oss-120b", **ON)
    with pytest.raises(NotModelledError, match="MiniMaxM2ForCausalLM"):
        weights("MiniMaxAI/MiniMax-M2.5", **ON, eplb_config={"num_redundant_experts": 8})


def test_a_tower_by_data_is_whole_on_every_rank() -> None:
    by_data = {"mm_encoder_tp_mode": "data"}
    model = "Qwen/Qwen3-VL-8B-Instruct"
    # vLLM's own count: half of the tower's matrices, 571,730,544 B, come back at TP 2.
    more = weights(model, tensor_parallel_size=2, **by_data) - weights(
        model, tensor_parallel_size=2
    )
    assert more == 571_730_544
    assert weights(model, **by_data) == weights(model)
    text = {"tensor_parallel_size": 2, "language_model_only": True}
    assert weights(model, **text, **by_data) == weights(model, **text)
    # Gemma 3's cannot: vLLM goes on cutting it.
    gemma = "google/gemma-3-27b-it"
    assert weights(gemma, tensor_parallel_size=2, **by_data) == weights(
        gemma, tensor_parallel_size=2
    )
