"""What has to hold for every model, GPU and setting, tried at random."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor import size
from vllm_advisor.api.models import find_model
from vllm_advisor.errors import AdvisorError, InfeasibleError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.model_profiles import model_profile_names
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import KVCacheSettings, stage_layers
from vllm_advisor.units import format_bytes, parse_bytes, parse_tokens

GIB = 1 << 30


@cache
def modelled() -> tuple[str, ...]:
    names = []
    for name in model_profile_names():
        try:
            find_model(name)
        except AdvisorError:
            continue
        names.append(name)
    return tuple(names)


def plain(name: str) -> bool:
    """Nothing but keys and values, in blocks of the same size with every cache dtype."""
    model = find_model(name)
    return (
        not model.is_hybrid
        and not model.block_outermost
        and all(
            spec.state is None
            and spec.content_bytes is None
            and not spec.sparse
            and spec.head_size < 512
            for spec in model.cache_specs
        )
    )


MODELS = st.sampled_from(modelled())
PLAIN = st.sampled_from([name for name in modelled() if plain(name)])
LENGTHS = st.integers(min_value=1, max_value=200_000)


def layout(
    name: str,
    length: int,
    *,
    cache_dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    batched: int = 8192,
) -> CacheLayout:
    model = find_model(name)
    choice = attention_choice(model, 100 if "nvfp4" in name else 90, "a GPU", cache_dtype)
    return CacheLayout(
        model.kv_cache,
        KVCacheSettings(
            cache_dtype=cache_dtype,
            model_dtype_bytes=2,
            block_size=choice.block_size,
            max_model_len=length,
            in_flight_tokens=2 * batched,
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            sparse_format=choice.sparse_format,
            block_outermost=model.block_outermost,
        ),
    )


def test_most_bundled_models_are_modelled() -> None:
    assert len(modelled()) >= 95


@given(MODELS, LENGTHS, LENGTHS)
@settings(max_examples=60)
def test_more_context_never_needs_less(name: str, first: int, second: int) -> None:
    short, long = sorted((first, second))
    cache = layout(name, long)
    assert cache.request_blocks(short) <= cache.request_blocks(long)


@given(PLAIN, LENGTHS)
@settings(max_examples=60)
def test_an_fp8_cache_is_half_of_a_16_bit_one(name: str, length: int) -> None:
    full, half = layout(name, length), layout(name, length, cache_dtype="fp8")
    assert half.block_bytes * 2 == full.block_bytes
    assert half.request_blocks() == full.request_blocks()


@given(MODELS, LENGTHS, st.integers(0, 200), st.integers(0, 50))
@settings(max_examples=60)
def test_more_memory_never_holds_less(name: str, length: int, gib: int, more: int) -> None:
    cache = layout(name, length)
    small, big = cache.capacity(gib * GIB), cache.capacity((gib + more) * GIB)
    assert small.num_gpu_blocks <= big.num_gpu_blocks
    assert small.tokens <= big.tokens
    assert small.estimated_max_model_len <= big.estimated_max_model_len
    assert big.fits or not small.fits


@given(MODELS, LENGTHS, st.integers(1, 200))
@settings(max_examples=60)
def test_the_estimated_length_is_the_longest_that_starts(name: str, length: int, gib: int) -> None:
    cache = layout(name, length)
    longest = cache.longest(gib * GIB, length)
    if longest:
        assert cache.admits(gib * GIB, longest)
    if longest < length:
        assert not cache.admits(gib * GIB, longest + 1)
    assert cache.capacity(gib * GIB).fits == (longest == length)


@given(MODELS, LENGTHS, st.sampled_from((1, 2, 4, 8)), st.sampled_from((1, 2)))
@settings(max_examples=60)
def test_more_ranks_never_hold_less_each(name: str, length: int, tp: int, pp: int) -> None:
    one = layout(name, length)
    try:
        more = layout(name, length, tp=tp, pp=pp)
    except InfeasibleError:
        return
    assert more.block_bytes <= one.block_bytes


@given(st.integers(1, 130), st.integers(1, 16))
def test_stages_hold_every_layer_once(layers: int, stages: int) -> None:
    if stages > layers:
        return
    found = [i for stage in stage_layers(layers, stages) for i in stage]
    assert found == list(range(layers))


@given(
    st.sampled_from(
        ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "google/gemma-2-9b-it")
    ),
    st.sampled_from(("a100-sxm4-80", "h100-sxm", "h200-sxm", "b200", "l40s")),
    st.integers(1, 512),
    st.floats(0.3, 1.0),
)
@settings(max_examples=60)
def test_the_budget_sums(model: str, gpu: str, sequences: int, utilization: float) -> None:
    report = size(
        model,
        gpu=gpu,
        max_num_seqs=sequences,
        gpu_memory_utilization=utilization,
        max_model_len=8192,
    )
    budget = report.figures.budget
    assert budget is not None
    assert sum(int(f.value) for f in budget.parts) == budget.requested.value
    assert budget.requested.value <= budget.total.value


@given(st.integers(0, 1 << 50))
def test_sizes_read_back(count: int) -> None:
    text = format_bytes(count)
    assert abs(parse_bytes(text.replace(",", "")) - count) <= max(1, count * 0.01)


@given(st.integers(1, 10_000))
def test_token_suffixes(count: int) -> None:
    assert parse_tokens(f"{count}k") == count * 1000
    assert parse_tokens(f"{count}K") == count * 1024
    assert parse_tokens(str(count)) == count
