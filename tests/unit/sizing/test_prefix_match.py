"""--prefix-match-unit: what vLLM refuses of it, once layers are grouped."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, InputError

GIB = 1 << 30
ONE_GROUP = "meta-llama/Llama-3.1-8B-Instruct"  # 32 equal layers, blocks of 16 tokens
WINDOWED = "google/gemma-3-27b-it"  # windows beside full attention, blocks of 16 tokens
HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"  # blocks of a multiple of 64 tokens


def sized(model: str, unit: Any, **args: Any) -> Any:
    return size(
        model, gpu="h200-sxm", kv_cache_memory_bytes=40 * GIB, prefix_match_unit=unit, **args
    )


@pytest.mark.parametrize(
    ("model", "unit"),
    [(ONE_GROUP, 16), (WINDOWED, 8), (WINDOWED, 16), (HYBRID, 64)],
)
def test_a_unit_of_whole_blocks_changes_nothing(model: str, unit: int) -> None:
    given = {"tensor_parallel_size": 1 if model == ONE_GROUP else 4}
    without = size(model, gpu="h200-sxm", kv_cache_memory_bytes=40 * GIB, **given)
    assert sized(model, unit, **given).figures.capacity == without.figures.capacity


@pytest.mark.parametrize(
    ("model", "unit"),
    # One group wants its block size, no divisor of it; several want a divisor.
    [(ONE_GROUP, 8), (ONE_GROUP, 32), (WINDOWED, 7), (WINDOWED, 32), (HYBRID, 100)],
)
def test_any_other_unit_is_refused(model: str, unit: int) -> None:
    with pytest.raises(InfeasibleError, match=f"Invalid prefix_match_unit={unit}"):
        sized(model, unit, tensor_parallel_size=1 if model == ONE_GROUP else 4)


def test_without_block_hashes_nothing_is_checked() -> None:
    assert sized(ONE_GROUP, 8, enable_prefix_caching=False).fits
    with pytest.raises(InfeasibleError):  # a connector hashes blocks as well
        sized(ONE_GROUP, 8, enable_prefix_caching=False, kv_offloading_size=4)


def test_it_starts_at_one() -> None:
    with pytest.raises(InputError, match="prefix_match_unit"):
        sized(ONE_GROUP, 0)
