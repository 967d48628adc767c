"""Weights in CPU memory, parameter by parameter."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError

GIB = 1 << 30
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
# One layer in 16 bits: qkv 6,144 x 4,096, o 4,096 x 4,096, gate and up 28,672 x 4,096,
# down 4,096 x 14,336, two norms of 4,096.
PARAMETERS = [2 * n for n in (6144 * 4096, 4096**2, 28672 * 4096, 4096 * 14336, 4096, 4096)]
LAYER = sum(PARAMETERS)  # 436,224,000 bytes


def weights(**args: Any) -> int:
    report = size(LLAMA, gpu="h100-sxm", **args)
    assert report.figures.budget is not None
    return int(report.figures.budget.weights.value)


def saved(**args: Any) -> int:
    return weights() - weights(**args)


def test_whole_parameters_leave_until_the_limit_is_passed() -> None:
    # 4 GiB are 9 layers and 368,951,296 bytes: qkv, o and the gate's 234,881,024 pass 318,767,104,
    # the down projection's 117,440,512 the limit.
    rest = 4 * GIB - 9 * LAYER
    assert sum(PARAMETERS[:3]) < rest < sum(PARAMETERS[:4])
    assert saved(cpu_offload_gb=4) == 9 * LAYER + sum(PARAMETERS[:4])


def test_never_more_than_the_layers() -> None:
    assert saved(cpu_offload_gb=1000) == 32 * LAYER


def test_only_what_is_named() -> None:
    gate_up, down = PARAMETERS[2], PARAMETERS[3]
    assert saved(cpu_offload_gb=1000, cpu_offload_params=["mlp"]) == 32 * (gate_up + down)
    assert saved(cpu_offload_gb=1000, cpu_offload_params=["down_proj.weight"]) == 32 * down
    assert saved(cpu_offload_gb=1000, cpu_offload_params=["down"]) == 0  # no whole segment


def test_prefetched_layers_leave_and_their_buffers_stay() -> None:
    # Layers 6, 7, 14, 15, ... of 32; each shape of each name has one buffer for each step ahead.
    given = {"offload_group_size": 8, "offload_num_in_group": 2}
    assert saved(**given) == 8 * LAYER - LAYER
    assert saved(**given, offload_prefetch_step=3) == 8 * LAYER - 3 * LAYER
    assert saved(offload_group_size=33) == 0


def test_each_rank_keeps_its_own_share() -> None:
    # Two stages of 16 layers, each cut in two; norms are whole: (436,224,000 + 2 x 8,192) / 2.
    both = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}
    layer = (LAYER - 2 * 8192) // 2 + 2 * 8192
    assert weights(**both) - weights(cpu_offload_gb=1000, **both) == 16 * layer


def test_a_prefetched_group_wins_over_a_limit_unless_asked() -> None:
    given = {"offload_group_size": 8, "cpu_offload_gb": 1000}
    assert saved(**given) == 4 * LAYER - LAYER
    assert saved(**given, offload_backend="uva") == 32 * LAYER


@pytest.mark.parametrize(
    "args",
    [
        {"offload_group_size": 2, "offload_num_in_group": 3},
        {"offload_backend": "prefetch"},  # one layer of a group of none
        {"offload_group_size": 2, "offload_prefetch_step": 0},
    ],
)
def test_what_vllm_refuses(args: dict[str, Any]) -> None:
    with pytest.raises(InfeasibleError):
        weights(**args)


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3-Next-80B-A3B-Instruct",  # recurrent layers
        "google/gemma-3-27b-it",  # an encoder takes its share first
        "deepseek-ai/DeepSeek-V3",  # quantized
    ],
)
def test_other_layers_are_not_modelled(model: str) -> None:
    with pytest.raises(NotModelledError, match="cpu_offload_gb"):
        size(model, gpu="h200-sxm", tensor_parallel_size=8, cpu_offload_gb=4)


def test_no_amount() -> None:
    with pytest.raises(InputError, match="cpu_offload_gb"):
        weights(cpu_offload_gb=-1)
