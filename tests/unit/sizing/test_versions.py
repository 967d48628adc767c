"""Where vLLM 0.32 and 0.33 differ in what they keep."""

from __future__ import annotations

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError

GIB = 1 << 30
MIB = 1 << 20


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


def test_before_0_33_every_stage_holds_the_vision_tower() -> None:
    # Qwen3-VL-30B-A3B over two stages: the last has the head (311 M), the first the embedding as
    # well as, since 0.33, the tower alone. Both figures are vLLM's own; beside them 262,144
    # positions x 128 of 2 B, 24 layers x 4 scales of 4 B, and what the allocator does not split of
    # the embedding and the head: 593.5 MiB each.
    beside, unsplit = 262_144 * 128 * 2 + 24 * 4 * 4, MIB // 2
    found = {}
    for version in ("0.32.0", "0.33.0"):
        report = size(
            "Qwen/Qwen3-VL-30B-A3B-Instruct",
            gpu="h100-sxm",
            pipeline_parallel_size=2,
            vllm_version=version,
        )
        assert report.figures.budget is not None
        found[version] = int(report.figures.budget.weights.value)
    assert found == {
        "0.32.0": 32_231_717_344 + beside + 2 * unsplit,
        "0.33.0": 31_609_383_392 + beside + unsplit,
    }


def test_before_0_33_a_16_bit_cache_may_differ_from_the_model() -> None:
    given = {"kv_cache_memory_bytes": 40 * GIB, "kv_cache_dtype": "float16"}
    model = "meta-llama/Llama-3.1-8B-Instruct"
    assert size(model, vllm_version="0.32.0", **given).figures.capacity.tokens == 327_680
    with pytest.raises(InfeasibleError, match="incompatible"):
        size(model, vllm_version="0.33.0", **given)
