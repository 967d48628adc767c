"""One step of the engine, computed by hand from round numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vllm_advisor.sizing.step_time import StepParts, cache_bytes, step_parts
from vllm_advisor.sizing.step_work import CacheReads, StepWork, WeightFormat
from vllm_advisor.types.latency import LatencyConstants

# Half of the bandwidth, a tenth for experts; half of the peak. Times are whole microseconds.
CONSTANTS = LatencyConstants(
    weight_read=0.5,
    expert_read=0.1,
    cache_read=0.5,
    matrix=0.5,
    expert_matrix=0.25,
    expert_fp4=2.0,
    expert_int4=0.5,
    expert_spread=1.0,
    int4_read=0.8,
    attention=0.5,
    int4_blackwell=0.5,
    nvlink=0.5,
    pcie=0.25,
    all_reduce=10e-6,
    layer=10e-6,
    expert_layer=20e-6,
    expert_layer_fp4=30e-6,
    expert_layer_int4=40e-6,
    prompt_layer=50e-6,
    step=1e-3,
    sequence=5e-6,
    prefill_overlap=0.8,
    request=20e-3,
    prompt_token=1e-6,
    start_wave=0.1,
)
# 1 GB of weights at 1 TB/s, 10 us of arithmetic for a token, 1 MB of cache for a token of context.
DENSE = StepWork(
    weight_bytes=1_000_000_000,
    expert_bytes=0,
    dense_format=WeightFormat.PLAIN,
    expert_format=WeightFormat.PLAIN,
    experts=0,
    experts_per_token=0,
    dense_seconds=8e-6,
    head_seconds=2e-6,
    expert_seconds=0.0,
    cache=(CacheReads(window=None, bytes_per_token=1_000_000.0),),
    state_bytes=0,
    attention_flops=1e6,
    window_flops=(),
    decode_flops=0.0,
    layers=10,
    expert_layers=0,
    reduced_bytes=10_000,
    reduces=20,
    ranks=1,
    engines=1,
    bandwidth=1e12,
    link=1e11,
    nvlink=True,
    blackwell=False,
    peak=1e15,
)
EXPERTS = replace(
    DENSE,
    expert_bytes=4_000_000_000,
    experts=4,
    experts_per_token=1,
    expert_seconds=1e-6,
    expert_layers=10,
)


def test_one_sequence_of_a_dense_model() -> None:
    parts = step_parts(DENSE, CONSTANTS, sequences=1, context=100)
    # Weights 1e9 / (1e12 x 0.5) = 2 ms; cache 100 x 1e6 / (1e12 x 0.5) = 0.2 ms.
    assert parts.memory == pytest.approx(2.2e-3)
    # (8 us + 2 us of the head) / 0.5.
    assert parts.compute == pytest.approx(20e-6)
    assert parts.exchange == 0
    # 10 layers x 10 us + 1 ms + 1 sequence x 5 us.
    assert parts.overhead == pytest.approx(1.105e-3)


def test_ten_sequences_read_the_weights_once() -> None:
    parts = step_parts(DENSE, CONSTANTS, sequences=10, context=100)
    assert parts.memory == pytest.approx(2e-3 + 10 * 0.2e-3)
    assert parts.compute == pytest.approx(10 * 20e-6)
    assert parts.overhead == pytest.approx(1.1e-3 + 10 * 5e-6)


def test_reading_and_computing_overlap() -> None:
    # (3^3 + 4^3)^(1/3) = 91^(1/3) = 4.498, and 1 + 2 beside it.
    parts = StepParts(memory=3.0, compute=4.0, exchange=1.0, overhead=2.0)
    assert parts.seconds == pytest.approx(4.498 + 3.0, abs=1e-3)
    # Of two equal parts the sum is 2^(1/3) = 1.26 of one.
    equal = StepParts(memory=1.0, compute=1.0, exchange=0.0, overhead=0.0)
    assert equal.seconds == pytest.approx(1.26, abs=1e-3)
    alone = StepParts(memory=1.0, compute=0.0, exchange=0.0, overhead=0.0)
    assert alone.seconds == 1.0


def test_a_prompt_in_the_step() -> None:
    parts = step_parts(
        DENSE, CONSTANTS, sequences=2, context=100, prompt_tokens=98, prompt_context=50
    )
    # 100 tokens x 8 us / 0.5 = 1.6 ms; logits of 2 + 1 tokens: 3 x 2 us / 0.5 = 12 us;
    # attention 98 tokens x 50 x 1e6 flops / (1e15 x 0.5) = 9.8 us.
    assert parts.compute == pytest.approx(1.6e-3 + 12e-6 + 9.8e-6)
    # The cache of the prompt is not read by its own tokens: 2 sequences x 0.2 ms.
    assert parts.memory == pytest.approx(2.4e-3)
    # 10 layers x (10 + 50) us + 1 ms + 2 x 5 us.
    assert parts.overhead == pytest.approx(1.61e-3)


def test_a_prompt_looks_no_further_back_than_a_window() -> None:
    work = replace(DENSE, window_flops=((20, 3e6),))
    more = step_parts(work, CONSTANTS, sequences=0, context=0, prompt_tokens=10, prompt_context=50)
    none = step_parts(DENSE, CONSTANTS, sequences=0, context=0, prompt_tokens=10, prompt_context=50)
    # 10 tokens x 20 (not 50) x 3e6 / (1e15 x 0.5) = 1.2 us.
    assert more.compute - none.compute == pytest.approx(1.2e-6)


def test_experts_that_a_step_touches() -> None:
    one = step_parts(EXPERTS, CONSTANTS, sequences=1, context=0)
    # 1 of 4 experts: 1 - (1 - 1/4) = 1/4 of 4e9 bytes / (1e12 x 0.1) = 10 ms, and 2 ms of the rest.
    assert one.memory == pytest.approx(12e-3)
    # 1 us / 0.25, and 20 us of the rest.
    assert one.compute == pytest.approx(24e-6)
    # 10 layers x (10 + 20) us + 1 ms + 5 us.
    assert one.overhead == pytest.approx(1.305e-3)
    two = step_parts(EXPERTS, CONSTANTS, sequences=2, context=0)
    # 1 - (3/4)^2 = 7/16 of 40 ms = 17.5 ms.
    assert two.memory == pytest.approx(2e-3 + 17.5e-3)


def test_fewer_experts_where_tokens_choose_alike() -> None:
    # Of 4 tokens as if 2 chose: 7/16 again.
    alike = replace(CONSTANTS, expert_spread=0.5)
    four = step_parts(EXPERTS, alike, sequences=4, context=0)
    assert four.memory == pytest.approx(2e-3 + 17.5e-3)


def test_engines_share_the_experts() -> None:
    # Each of 2 engines has 1 sequence: their experts see 2 tokens, dense layers 1.
    work = replace(EXPERTS, engines=2)
    parts = step_parts(work, CONSTANTS, sequences=1, context=0)
    assert parts.memory == pytest.approx(2e-3 + 17.5e-3)
    assert parts.compute == pytest.approx(20e-6 + 2 * 4e-6)


@pytest.mark.parametrize(
    ("form", "blackwell", "memory", "compute", "layer"),
    [
        # 2 ms of the dense part + 10 ms of one expert; 20 us + 1 us / 0.25.
        (WeightFormat.PLAIN, False, 12e-3, 24e-6, 20e-6),
        # Arithmetic twice as fast: 1 us / (0.25 x 2).
        (WeightFormat.FP4, True, 12e-3, 22e-6, 30e-6),
        # Read at 0.8 of the rate: 12.5 ms; arithmetic at half: 1 us / 0.125.
        (WeightFormat.INT4, False, 14.5e-3, 28e-6, 40e-6),
        # Half again of both on Blackwell: 25 ms and 16 us.
        (WeightFormat.INT4, True, 27e-3, 36e-6, 40e-6),
    ],
)
def test_formats_of_experts(
    form: WeightFormat, blackwell: bool, memory: float, compute: float, layer: float
) -> None:
    work = replace(EXPERTS, expert_format=form, blackwell=blackwell)
    parts = step_parts(work, CONSTANTS, sequences=1, context=0)
    assert parts.memory == pytest.approx(memory)
    assert parts.compute == pytest.approx(compute)
    assert parts.overhead == pytest.approx(1.105e-3 + 10 * layer)


def test_dense_weights_in_int4() -> None:
    # 2 ms / 0.8; on Blackwell half of that rate.
    work = replace(DENSE, dense_format=WeightFormat.INT4)
    assert step_parts(work, CONSTANTS, sequences=1, context=0).memory == pytest.approx(2.5e-3)
    there = replace(work, blackwell=True)
    assert step_parts(there, CONSTANTS, sequences=1, context=0).memory == pytest.approx(5e-3)


def test_two_ranks_exchange_each_token() -> None:
    work = replace(DENSE, ranks=2)
    parts = step_parts(work, CONSTANTS, sequences=10, context=0)
    # A ring moves 2 x (2 - 1) / 2 = 1 time 10 tokens x 10,000 B = 0.1 MB, in 2 us at 5e10 B/s;
    # with 10 us before it, 20 times.
    assert parts.exchange == pytest.approx(20 * 12e-6)
    # Without NVLink at a quarter of the link: 4 us.
    slow = step_parts(replace(work, nvlink=False), CONSTANTS, sequences=10, context=0)
    assert slow.exchange == pytest.approx(20 * 14e-6)


def test_eight_ranks_take_more_hops() -> None:
    parts = step_parts(replace(DENSE, ranks=8), CONSTANTS, sequences=10, context=0)
    # (1 + log2 8) / 2 = 2 times 10 us; 2 x 7/8 x 0.1 MB = 0.175 MB in 3.5 us.
    assert parts.exchange == pytest.approx(20 * 23.5e-6)


def test_cache_of_windows_and_states() -> None:
    both = replace(
        DENSE,
        cache=(
            CacheReads(window=None, bytes_per_token=1000.0),
            CacheReads(window=50, bytes_per_token=3000.0),
        ),
        state_bytes=7_000_000,
    )
    # 100 x 1,000 B + 50 x 3,000 B; below the window both grow.
    assert cache_bytes(both, 100) == 250_000
    assert cache_bytes(both, 10) == 40_000
    # With 7 MB of state 7.25 MB for each of 4 sequences: 29 MB at 5e11 B/s = 58 us.
    parts = step_parts(both, CONSTANTS, sequences=4, context=100)
    assert parts.memory == pytest.approx(2e-3 + 58e-6)


def test_latent_attention_computes_while_it_decodes() -> None:
    work = replace(DENSE, decode_flops=1e6)
    parts = step_parts(work, CONSTANTS, sequences=5, context=1000)
    # 5 x 1,000 x 1e6 / (1e15 x 0.5) = 10 us beside 5 x 20 us.
    assert parts.compute == pytest.approx(110e-6)
