"""Where vLLM 0.32 and 0.33 differ in what they keep."""

from __future__ import annotations

import pytest

from vllm_advisor import size

GIB = 1 << 30


@pytest.mark.parametrize(
    ("version", "block_size", "states"), [("0.32.0", 544, 2), ("0.33.0", 576, 3)]
)
def test_a_gated_delta_net_keeps_a_checkpoint_since_0_33(
    version: str, block_size: int, states: int
) -> None:
    # 1,097,728 B of state over 2,048 B a token (see test_hand_computed) = 536 tokens: rounded up to
    # 16 in 0.32, to FlashInfer's chunks of 64 in 0.33. Both answers are vLLM's own.
    report = size(
        "Qwen/Qwen3-Next-80B-A3B-Instruct", kv_cache_memory_bytes=40 * GIB, vllm_version=version
    )
    capacity = report.figures.capacity
    assert capacity.block_size == block_size
    recurrent = [g for g in capacity.groups if g.kind == "mamba"]
    assert [g.blocks_per_request for g in recurrent] == [states] * 3
