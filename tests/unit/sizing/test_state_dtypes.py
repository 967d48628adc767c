"""--mamba-cache-dtype, --mamba-ssm-cache-dtype and --mamba-block-size, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, InputError

GIB = 1 << 30
HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
KDA = "moonshotai/Kimi-K3"


def sized(model: str, **args: Any) -> Any:
    return size(model, kv_cache_memory_bytes=40 * GIB, **args)


@pytest.mark.parametrize(
    ("convolution", "recurrence", "state", "block_size"),
    [
        # 3 rows x (2 x 16 x 128 + 32 x 128) channels = 24,576 elements of the convolution, 32 heads
        # x 128 x 128 = 524,288 of the recurrence; a token takes 2 x 2 heads x 256 x 2 B = 2,048 B.
        ("auto", "auto", (24_576 + 524_288) * 2, 576),  # 536 tokens, in chunks of 64
        ("auto", "float32", 24_576 * 2 + 524_288 * 4, 1088),  # 1,048
        ("float32", "auto", (24_576 + 524_288) * 4, 1088),  # 1,072: the recurrence follows
        ("float32", "float16", 24_576 * 4 + 524_288 * 2, 576),  # 560
    ],
)
def test_states_grow_with_their_dtypes(
    convolution: str, recurrence: str, state: int, block_size: int
) -> None:
    report = sized(HYBRID, mamba_cache_dtype=convolution, mamba_ssm_cache_dtype=recurrence)
    assert report.figures.capacity.block_size == block_size
    assert block_size - 64 < state / 2048 <= block_size


def test_a_recurrence_with_a_dtype_of_its_own_keeps_it() -> None:
    # Nemotron's is FP32 by its config: 64 heads x 64 x 128 x 4 B = 2,097,152 B, and 3 rows x
    # (4,096 + 2 x 8 x 128) channels of the convolution. A token takes 2 x 2 heads x 128 x 2 B.
    convolution = 3 * (4096 + 2 * 8 * 128)
    for dtype, size_of in (("auto", 2), ("float32", 4)):
        state = 2_097_152 + convolution * size_of
        block = sized(NEMOTRON, mamba_cache_dtype=dtype).figures.capacity.block_size
        assert block == -(-state // (16 * 1024)) * 16


def test_kda_takes_no_float16() -> None:
    with pytest.raises(InfeasibleError, match="KDA"):
        sized(KDA, mamba_ssm_cache_dtype="float16", tensor_parallel_size=8)
    small = sized(KDA, mamba_ssm_cache_dtype="bfloat16", tensor_parallel_size=8)
    assert (
        small.figures.capacity.tokens > sized(KDA, tensor_parallel_size=8).figures.capacity.tokens
    )


def test_the_block_size_of_states_follows_that_of_attention() -> None:
    assert sized(HYBRID, mamba_block_size=1024).figures == sized(HYBRID).figures
    with pytest.raises(InfeasibleError, match="--mamba-block-size"):
        sized(HYBRID, mamba_block_size=1024, enable_prefix_caching=False)


def test_no_other_dtype() -> None:
    with pytest.raises(InputError, match="mamba_cache_dtype"):
        sized(HYBRID, mamba_cache_dtype="fp8")
