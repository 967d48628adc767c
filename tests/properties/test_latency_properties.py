"""What physics asks of every estimate of latency, tried at random.

Models of each kind (dense, experts, latent attention, sliding window, recurrent layers) on GPUs
from A10 to B200. ``NEAR`` allows for two things: a prompt's chunks are taken to be alike, each with
the mean context, and what a step reads less leaves less for its arithmetic to hide behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from latency_stations import station

from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.performance import performance
from vllm_advisor.sizing.steady_state import Station, closed_loop, open_loop

NEAR = 1.01
EXAMPLES = settings(max_examples=150, deadline=None)


@dataclass(frozen=True)
class Engine:
    """A model on GPUs, and what one token needs at the very least, by the model's card.

    ``read`` are bytes of weights of all ranks that any step reads, ``active`` the parameters that
    each token is multiplied with, without the input embedding, ``bits`` of the fastest arithmetic.
    """

    model: str
    gpu: str
    tp: int
    read: float
    active: float
    bits: int

    def serving(self, prompt: float, output: float, cached: float = 0.0, **args: object) -> Station:
        args = {"tensor_parallel_size": self.tp, **args}
        return station(self.model, self.gpu, prompt=prompt, output=output, cached=cached, **args)


ENGINES = [
    # 8.03e9 parameters less 128,256 x 4,096 of the embedding: 7.5e9, in 2 bytes.
    Engine("llama-3.1-8b-instruct", "h100-sxm", 1, 15.0e9, 7.5e9, 16),
    Engine("llama-3.1-8b-instruct", "l4", 2, 15.0e9, 7.5e9, 16),
    # 7.6e9 less 152,064 x 3,584: 7.07e9.
    Engine("qwen2.5-7b-instruct", "a10", 1, 14.1e9, 7.07e9, 16),
    # 70.6e9 less 128,256 x 8,192: 69.5e9, all but the head in one byte.
    Engine("llama-3.1-70b-instruct-fp8", "h200-sxm", 2, 69.5e9, 69.5e9, 8),
    Engine("llama-3.1-70b-instruct-fp8", "b200", 4, 69.5e9, 69.5e9, 8),
    # Experts: what one token takes of them. 3.3e9 of 30.5e9, 5.1e9 of 117e9, less the embedding.
    Engine("qwen3-30b-a3b", "h100-sxm", 1, 5.9e9, 2.9e9, 16),
    Engine("gpt-oss-120b", "b200", 1, 2.2e9, 4.4e9, 8),
    Engine("gpt-oss-120b", "a100-sxm4-80", 2, 2.2e9, 4.4e9, 16),
    # Latent attention: 37e9 of 671e9 in FP8, 2.4e9 of 15.7e9, 32e9 of 1e12 with INT4 experts.
    Engine("deepseek-v3", "h200-sxm", 8, 35e9, 35e9, 8),
    Engine("deepseek-v2-lite", "a100-sxm4-80", 1, 4.2e9, 2.1e9, 16),
    Engine("kimi-k2.5", "h200-sxm", 8, 15e9, 30e9, 16),
    # Sparse attention over latents.
    Engine("deepseek-v3.2", "b200", 8, 35e9, 35e9, 8),
    # Sliding window in five of six layers. 27.4e9 less 0.42e9 of the vision tower.
    Engine("gemma-3-27b-it", "h200-sxm", 1, 50e9, 25e9, 16),
    # Recurrent layers in three of four.
    Engine("qwen3-next-80b-a3b-instruct", "h200-sxm", 2, 5e9, 2.6e9, 16),
    Engine("qwen3.5-27b", "h200-sxm", 1, 48e9, 24e9, 16),
]
ANY = st.sampled_from(ENGINES)
PROMPTS = st.integers(2, 60_000)
OUTPUTS = st.integers(1, 8_000)
LOADS = st.integers(1, 2_000)
SHARES = st.floats(0, 0.99)


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, more=st.integers(1, 60_000), output=OUTPUTS, running=LOADS)
def test_more_context_is_never_faster(
    engine: Engine, prompt: int, more: int, output: int, running: int
) -> None:
    short, long = engine.serving(prompt, output), engine.serving(prompt + more, output)
    at_once = min(running, long.places)
    assert short.step(at_once).seconds <= long.step(at_once).seconds
    assert short.tpot(at_once) <= long.tpot(at_once) * NEAR
    assert short.floor < long.floor


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, output=OUTPUTS, load=LOADS, more=LOADS)
def test_more_requests_at_once_never_lower_tpot(
    engine: Engine, prompt: int, output: int, load: int, more: int
) -> None:
    serving = engine.serving(prompt, output)
    few, many = closed_loop(serving, load), closed_loop(serving, load + more)
    assert few.tpot <= many.tpot * (1 + 1e-9)
    assert few.ttft <= many.ttft * NEAR


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, output=OUTPUTS, load=LOADS, more=LOADS)
def test_more_requests_at_once_never_lower_the_throughput(
    engine: Engine, prompt: int, output: int, load: int, more: int
) -> None:
    """But for steps full of prompts, whose arithmetic then has less reading to hide behind."""
    serving = engine.serving(prompt, output)
    few, many = closed_loop(serving, load), closed_loop(serving, load + more)
    least = 0.97 if output >= 64 else 0.9
    assert many.tokens_per_second >= least * few.tokens_per_second
    if load >= serving.places:
        assert many.tokens_per_second == pytest.approx(few.tokens_per_second)


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, output=OUTPUTS, load=LOADS)
def test_throughput_stays_below_what_the_data_sheet_allows(
    engine: Engine, prompt: int, output: int, load: int
) -> None:
    """Each output token takes a step of its request, and each step reads the active weights."""
    gpu = find_gpu(engine.gpu)
    assert gpu.memory_bandwidth is not None
    assert gpu.bf16_flops is not None
    peak = gpu.bf16_flops if engine.bits == 16 else gpu.fp8_flops
    assert peak is not None
    reading = engine.read / engine.tp / gpu.memory_bandwidth  # seconds of a step at the least
    computing = 2 * engine.active / engine.tp / peak  # seconds of a token at the least
    serving = engine.serving(prompt, output)
    for served in (closed_loop(serving, load), open_loop(serving, load / 10)):
        assert served.tpot >= reading
        assert served.tokens_per_second <= max(1.0, served.running) / reading
        tokens = served.requests_per_second * (prompt + output - 1)
        assert tokens * computing <= 1


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, output=OUTPUTS, share=SHARES, running=LOADS)
def test_a_cached_prefix_is_never_slower(
    engine: Engine, prompt: int, output: int, share: float, running: int
) -> None:
    cold = engine.serving(prompt, output)
    warm = replace(cold, cached=min(share * prompt, prompt - 1))
    at_once = min(running, cold.places)
    assert warm.floor <= cold.floor * (1 + 1e-9)
    assert warm.tpot(at_once) <= cold.tpot(at_once) * NEAR
    few, many = closed_loop(warm, running), closed_loop(cold, running)
    assert few.ttft <= many.ttft * NEAR
    assert few.tokens_per_second * NEAR >= many.tokens_per_second


TAKES_FP8 = [e for e in ENGINES if e.gpu in ("h100-sxm", "h200-sxm", "l4")]


@EXAMPLES
@given(
    engine=st.sampled_from(TAKES_FP8),
    prompt=st.integers(8_000, 100_000),
    output=st.integers(16, 2_000),
    running=st.integers(1, 256),
)
def test_an_fp8_cache_is_never_slower_with_long_context(
    engine: Engine, prompt: int, output: int, running: int
) -> None:
    sixteen = engine.serving(prompt, output, kv_cache_dtype="bfloat16")
    eight = engine.serving(prompt, output, kv_cache_dtype="fp8")
    # With more than a chunk of a prompt for each step, prompts hide behind less reading instead.
    full = output * sixteen.max_num_batched_tokens / prompt
    at_once = max(1.0, min(running, sixteen.places, full))
    assert eight.step(at_once).seconds <= sixteen.step(at_once).seconds
    assert eight.tpot(at_once) <= sixteen.tpot(at_once) * NEAR
    assert eight.places >= sixteen.places


@pytest.mark.parametrize("engine", TAKES_FP8, ids=lambda e: f"{e.model}-{e.gpu}")
def test_an_fp8_cache_is_faster_where_much_of_it_is_read(engine: Engine) -> None:
    """With four requests of 60,000 tokens; recurrent and windowed layers keep the rest small."""
    sixteen = engine.serving(60_000, 100, kv_cache_dtype="bfloat16")
    eight = engine.serving(60_000, 100, kv_cache_dtype="fp8")
    assert eight.step(4).memory < 0.99 * sixteen.step(4).memory


@pytest.mark.parametrize("gpu", ["h100-sxm", "h200-sxm", "b200"])
@pytest.mark.parametrize("prompt", [128, 4_000, 30_000])
def test_more_gpus_never_slow_a_large_dense_model_over_nvlink(gpu: str, prompt: int) -> None:
    sizes = [1, 2, 4, 8] if gpu != "h100-sxm" else [2, 4, 8]  # 70 GB do not fit in one of 80
    found = [
        station(
            "llama-3.1-70b-instruct-fp8", gpu, prompt=prompt, output=200, tensor_parallel_size=tp
        )
        for tp in sizes
    ]
    tpots = [s.tpot(1) for s in found]
    assert tpots == sorted(tpots, reverse=True)
    floors = [s.floor for s in found]
    assert floors == sorted(floors, reverse=True)
    for once, twice in pairwise(tpots):
        assert twice > once / 2  # what is exchanged costs something


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: f"{e.model}-{e.gpu}")
def test_the_cost_of_a_token_falls_with_the_batch_up_to_a_limit(engine: Engine) -> None:
    """GPU seconds per output token, with answers that are longer than prompts."""
    serving = engine.serving(256, 512)
    costs = [
        engine.tp / closed_loop(serving, load).tokens_per_second
        for load in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0] / 8
    limit = closed_loop(serving, serving.places)
    beyond = closed_loop(serving, 2 * serving.places)
    assert engine.tp / beyond.tokens_per_second == pytest.approx(
        engine.tp / limit.tokens_per_second
    )
    assert beyond.ttft > limit.ttft


@EXAMPLES
@given(engine=ANY, load=st.integers(1, 64), engines=st.integers(1, 16))
def test_engines_without_a_request_serve_none(engine: Engine, load: int, engines: int) -> None:
    serving, fit = engine.serving(500, 100), load_latency()
    all_of = performance(serving, fit, engines=engines, concurrency=load)
    assert all_of.running <= load + 1e-9
    one = performance(serving, fit, concurrency=1)
    most = load * one.output_tokens_per_second.point
    assert all_of.output_tokens_per_second.point <= most * (1 + 1e-9)


@EXAMPLES
@given(engine=ANY, prompt=PROMPTS, output=OUTPUTS, stages=st.integers(2, 8))
def test_a_request_that_is_alone_gains_nothing_from_stages(
    engine: Engine, prompt: int, output: int, stages: int
) -> None:
    """It is in one stage at a time, and passes all of them."""
    serving = engine.serving(prompt, output)
    assert replace(serving, stages=stages).tpot(1) == pytest.approx(serving.tpot(1))
