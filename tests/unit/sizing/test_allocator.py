"""What PyTorch's allocator holds beside tensors, by hand and against start-up logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor import size
from vllm_advisor.sizing.allocator import unsplit_bytes
from vllm_advisor.units import GIB, MIB


@pytest.mark.parametrize(
    ("size_of_tensor", "left"),
    [
        (10 * MIB - 1, 0),  # shares a segment with others
        (10 * MIB, 0),  # a whole segment
        (31 * MIB + MIB // 2, MIB // 2),  # of 32: kept whole
        (259 * MIB, MIB),  # of 260: 1 MiB is not yet split off
        (24 * MIB + MIB // 2, 0),  # of 26: 1.5 MiB are split off
    ],
)
def test_what_is_not_split_off(size_of_tensor: int, left: int) -> None:
    assert unsplit_bytes(size_of_tensor) == left


@given(st.integers(min_value=0, max_value=1 << 40))
def test_never_more_than_one_mib(size_of_tensor: int) -> None:
    left = unsplit_bytes(size_of_tensor)
    assert 0 <= left <= MIB
    assert left == 0 or (size_of_tensor + left) % (2 * MIB) == 0


def test_qwen_by_hand() -> None:
    """Qwen2.5-7B: 7,615,616,512 parameters of 2 B, and what lies beside them.

    RoPE: 32,768 x 128 of 2 B; 28 x 4 scales of 4 B. Of each layer's matrices, QKV has 31.5 MiB,
    gate and up 259, down 129.5: 0.5 + 1 + 0.5 MiB are not split off. Embedding and head have
    1,039.5 MiB: 0.5 each.
    """
    budget = size("Qwen/Qwen2.5-7B-Instruct", gpu="h100-sxm").figures.budget
    assert budget is not None
    beside = 32_768 * 128 * 2 + 28 * 4 * 4
    assert int(budget.weights.value) == 2 * 7_615_616_512 + beside + 28 * 2 * MIB + MIB


@pytest.mark.parametrize(
    ("model", "ranks", "logged"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", 1, 14.25),
        ("Qwen/Qwen2.5-7B-Instruct", 2, 7.12),
        ("Qwen/Qwen2.5-72B-Instruct", 2, 67.8),
        ("Qwen/Qwen2.5-72B-Instruct", 4, 33.98),
        ("Qwen/Qwen3-8B", 1, 15.27),
        ("Qwen/Qwen3-32B", 2, 30.59),
    ],
)
def test_as_logged(model: str, ranks: int, logged: float) -> None:
    """Logs of vLLM 0.11 and 0.19 on H100 (tests/data/startups.jsonl), to their last digit."""
    budget = size(
        model, gpu="h100-sxm", tensor_parallel_size=ranks, max_model_len=8192
    ).figures.budget
    assert budget is not None
    assert int(budget.weights.value) / GIB == pytest.approx(logged, abs=0.0055)
