"""Operations of attention and matrices, held against counting pairs one by one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.sizing.attention_cost import (
    attended_pairs,
    attention_cost_ratio,
    kv_read_bytes,
    prefill_flops,
)
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    ModelFacts,
    WeightComponent,
    WeightFacts,
    WeightKind,
)
from vllm_advisor.types.source import Source, SourceKind

SOURCE = Source(SourceKind.HF, "meta-llama/Llama-3.1-8B/config.json")
FULL = KVCacheSpec(
    kind=KVCacheSpecKind.FULL_ATTENTION, num_kv_heads=8, head_size=128, head_size_v=128
)


def part(name: str, kind: WeightKind, params: int, layers: int = 0) -> WeightComponent:
    return WeightComponent(name=name, kind=kind, params=params, layers=tuple(range(layers)))


# Llama-3.1-8B, shape from its config.json: 32 layers, h 4096, f 14336, 32 heads, 8 KV heads, d 128.
ATTENTION = 4096 * 4096 + 4096 * 2048 + 4096 * 4096  # q, k and v, o
MLP = 3 * 4096 * 14336
HEAD = 128_256 * 4096
LLAMA = ModelFacts(
    model_id="meta-llama/Llama-3.1-8B",
    architecture="LlamaForCausalLM",
    num_hidden_layers=32,
    hidden_size=4096,
    intermediate_size=14336,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    vocab_size=128_256,
    max_position_embeddings=131_072,
    dtype="bfloat16",
    kv_cache=((FULL,),) * 32,
    weights=WeightFacts(
        components=(
            part("embed_tokens", WeightKind.EMBEDDING, HEAD),
            part("lm_head", WeightKind.LM_HEAD, HEAD),
            part("attention", WeightKind.ATTENTION, ATTENTION, 32),
            part("mlp", WeightKind.MLP, MLP, 32),
            part("norms", WeightKind.NORM, 2 * 4096, 32),
        ),
        source=SOURCE,
    ),
    source=SOURCE,
)


def with_parts(*parts: WeightComponent, **changes) -> ModelFacts:
    return replace(LLAMA, weights=WeightFacts(components=parts, source=SOURCE), **changes)


@pytest.mark.parametrize(
    ("tokens", "window", "chunk", "pairs"),
    [
        (1, None, None, 1),
        (4, None, None, 10),  # 1 + 2 + 3 + 4
        (131_072, None, None, 8_590_000_128),  # 131,072 x 131,073 / 2
        (6, 3, None, 15),  # 1 + 2 + 3 + 3 + 3 + 3
        (2, 3, None, 3),  # not yet filled
        (7, None, 3, 13),  # 6 + 6 + 1
        (3, None, 3, 6),
    ],
)
def test_attended_pairs(tokens, window, chunk, pairs):
    assert attended_pairs(tokens, window=window, chunk=chunk) == pairs


@given(st.integers(1, 80), st.integers(1, 100))
def test_attended_pairs_count_the_mask(tokens, width):
    causal = [(i, j) for i in range(tokens) for j in range(i + 1)]
    assert attended_pairs(tokens) == len(causal)
    assert attended_pairs(tokens, window=width) == sum(1 for i, j in causal if i - j < width)
    in_chunk = [(i, j) for i, j in causal if i // width == j // width]
    assert attended_pairs(tokens, chunk=width) == len(in_chunk)


def test_128k_against_4k():
    ratio = attention_cost_ratio(131_072, 4_096)
    assert ratio.quadratic == 32**2 == 1024
    # (131,072 x 131,073) / (4,096 x 4,097) = 32 x 131,073 / 4,097 = 1,023.7578...
    assert ratio.causal == pytest.approx(1023.7578, abs=1e-4)
    # A window of 4,096 makes it nearly linear:
    # (8,390,656 + 126,976 x 4,096) / 8,390,656 = 528,484,352 / 8,390,656 = 62.985
    windowed = attention_cost_ratio(131_072, 4_096, window=4_096)
    assert windowed.causal == pytest.approx(62.985, abs=1e-3)
    assert windowed.quadratic == 1024


def test_prefill_of_llama_3_1_8b():
    flops = prefill_flops(LLAMA, 4_096)
    # pairs 4,096 x 4,097 / 2 = 8,390,656; x 32 layers x 32 heads x 2 x (128 + 128) = 524,288
    assert flops.attention.value == 8_390_656 * 524_288
    # per layer 41,943,040 + 176,160,768 = 218,103,808; x 32 = 6,979,321,856 parameters
    assert ATTENTION + MLP == 218_103_808
    assert flops.linear.value == 2 * 6_979_321_856 * 4_096 + 2 * 525_336_576
    # 4.399e12 / (4.399e12 + 5.7176e13) = 7.1 %
    assert flops.attention_share == pytest.approx(0.0714, abs=1e-4)
    assert flops.total == flops.attention.value + flops.linear.value


def test_attention_dominates_at_128k_but_the_whole_grows_far_less_than_1024_fold():
    short, long = prefill_flops(LLAMA, 4_096), prefill_flops(LLAMA, 131_072)
    # 4.5036e15 / (4.5036e15 + 1.8296e15) = 71.1 %
    assert long.attention_share == pytest.approx(0.711, abs=1e-3)
    # (4.5036e15 + 1.8296e15) / (4.3991e12 + 5.7176e13) = 6.3332e15 / 6.1575e13 = 102.9
    assert long.total / short.total == pytest.approx(102.86, abs=0.05)


def test_window_layers_count_their_own_pairs():
    sliding = replace(FULL, kind=KVCacheSpecKind.SLIDING_WINDOW, window=3)
    chunked = replace(FULL, kind=KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION, window=4)
    model = replace(LLAMA, kv_cache=((FULL,), (sliding,), (chunked,)))
    # 6 tokens: full 21, window 3: 15, chunk 4: 10 + 3 = 13; x 32 heads x 512
    assert prefill_flops(model, 6).attention.value == (21 + 15 + 13) * 32 * 512


def test_a_token_passes_some_experts_only():
    experts = part("experts", WeightKind.EXPERTS, 8 * 1000, 32)
    model = with_parts(
        part("lm_head", WeightKind.LM_HEAD, 7), experts, num_experts=8, num_experts_per_tok=2
    )
    # 32 layers x 8,000 x 2 / 8 = 64,000 parameters a token
    assert prefill_flops(model, 10).linear.value == 2 * 64_000 * 10 + 2 * 7
    with pytest.raises(NotModelledError, match="experts"):
        prefill_flops(with_parts(experts), 10)


def test_tied_head_is_the_embedding():
    model = with_parts(
        part("embed_tokens", WeightKind.EMBEDDING, 7), part("mlp", WeightKind.MLP, 100, 2)
    )
    assert prefill_flops(model, 10).linear.value == 2 * 200 * 10 + 2 * 7


def test_latent_attention_is_expanded_to_its_heads():
    # DeepSeek-V3: 128 heads of 128 + 64 for keys and 128 for values, h 7168;
    # o_proj 128 x 128 x 7168 = 117,440,512 parameters; 512 + 64 elements cached.
    mla = KVCacheSpec(
        kind=KVCacheSpecKind.MLA_ATTENTION, num_kv_heads=1, head_size=576, head_size_v=0
    )
    shape = {
        "kv_cache": ((mla,),),
        "num_attention_heads": 128,
        "hidden_size": 7168,
        "head_dim": 192,
        "uses_mla": True,
    }
    model = with_parts(part("o_proj", WeightKind.ATTENTION, 117_440_512, 1), **shape)
    # 3 pairs x 128 heads x 2 x (192 + 128)
    assert prefill_flops(model, 2).attention.value == 3 * 128 * 640
    # 100 tokens x 576 x 2 bytes
    assert kv_read_bytes(model, 100, element_bytes=2) == 115_200
    with pytest.raises(NotModelledError, match="value heads"):
        prefill_flops(with_parts(**shape), 2)


def test_decode_reads_the_whole_cache():
    # 131,072 bytes a token (2 x 32 x 8 x 128 x 2) x 131,072 tokens = 16 GiB; half of it in FP8
    assert kv_read_bytes(LLAMA, 131_072, element_bytes=2) == 16 * 2**30
    assert kv_read_bytes(LLAMA, 131_072, element_bytes=1) == 8 * 2**30


def test_windows_and_chunks_bound_what_decode_reads():
    sliding = replace(FULL, kind=KVCacheSpecKind.SLIDING_WINDOW, window=4)
    chunked = replace(FULL, kind=KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION, window=4)
    per_token = 8 * 256 * 2
    for tokens, in_window, in_chunk in ((1, 1, 1), (4, 4, 4), (5, 4, 1), (9, 4, 1), (11, 4, 3)):
        one, other = replace(LLAMA, kv_cache=((sliding,),)), replace(LLAMA, kv_cache=((chunked,),))
        assert kv_read_bytes(one, tokens, element_bytes=2) == in_window * per_token
        assert kv_read_bytes(other, tokens, element_bytes=2) == in_chunk * per_token


def test_layers_without_a_cache_are_not_guessed():
    model = replace(LLAMA, kv_cache=((FULL,), ()))
    for call in (
        lambda: prefill_flops(model, 10),
        lambda: kv_read_bytes(model, 10, element_bytes=2),
    ):
        with pytest.raises(NotModelledError):
            call()


def test_impossible_lengths_are_refused():
    for call in (
        lambda: attended_pairs(0),
        lambda: attended_pairs(4, window=0),
        lambda: attended_pairs(4, chunk=0),
        lambda: attended_pairs(4, window=2, chunk=2),
        lambda: attention_cost_ratio(4, 0),
        lambda: prefill_flops(LLAMA, 0),
        lambda: kv_read_bytes(LLAMA, 0, element_bytes=2),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.where
        assert error.value.fix
