"""Speculative decoding: what a draft keeps and weighs, by hand, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor import size
from vllm_advisor.api.models import find_model
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError, InfeasibleError, InputError, NotModelledError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.sizing.drafting import draft_weight_bytes
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.overhead import captured_sizes
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.sizing import Capacity

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
SMALL = "meta-llama/Llama-3.2-1B-Instruct"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
CACHE = 40 * 2**30
HEAD: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 1,
    "vocab_size": 128256,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
}
THREE_HEAD = HEAD | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}


@dataclass(frozen=True, slots=True)
class Laid:
    """Settings, and what ``CACHE`` bytes hold with them, whatever the weights take."""

    settings: InstanceSettings
    capacity: Capacity


def laid(model: str, speculative: dict[str, Any] | None = None, **args: Any) -> Laid:
    if speculative is not None:
        args["speculative_config"] = speculative
    facts = find_model(model)
    settings = resolve_settings(facts, load_engine("0.33.0"), find_gpu("h100-sxm"), args).settings
    return Laid(settings, cache_layout(facts, settings).capacity(CACHE))


def ngram(tokens: int) -> dict[str, Any]:
    return {"method": "ngram", "num_speculative_tokens": tokens}


def mtp(tokens: int) -> dict[str, Any]:
    return {"method": "mtp", "num_speculative_tokens": tokens}


@pytest.fixture
def head(tmp_path: Path) -> Any:
    def written(config: dict[str, Any], name: str = "head") -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return str(folder)

    return written


def test_ngrams_cost_full_attention_nothing() -> None:
    plain = laid(LLAMA)
    assert laid(LLAMA, ngram(3)).capacity == plain.capacity


def test_a_state_keeps_a_row_and_a_block_for_every_drafted_token() -> None:
    """Qwen3-Next at TP 4: convolution of 4 - 1 + 3 rows, states for 2 + 1 checkpoint + 3 tokens."""
    report = laid(NEXT, ngram(3), tensor_parallel_size=4)
    state = 6 * 8192 // 4 * 2 + 32 // 4 * 128 * 128 * 2
    # One of its two KV heads a rank: 1 x (256 + 256) x 2 B a token; blocks in steps of 64.
    block = 64 * -(-state // (64 * 1024))
    groups = report.capacity.groups
    assert report.capacity.block_size == block == 320
    assert [g.blocks_per_request for g in groups if g.kind == "mamba"] == [6, 6, 6]


def test_mtp_joins_the_attention_layers() -> None:
    """Qwen3-Next: 12 full layers and the draft's, blocks of 576 tokens (vLLM says 2,800 blocks)."""
    found = laid(NEXT, mtp(1)).capacity
    page = 576 * 2 * (256 + 256) * 2
    assert found.bytes_per_block == 13 * page
    assert found.num_gpu_blocks == CACHE // (13 * page) == 2800
    # Three groups of states: 2, the prefill's checkpoint and one for the drafted token.
    assert found.blocks_per_request == -(-262144 // 576) + 3 * 4


def test_an_eagle_head_by_hand(head: Any) -> None:
    report = laid(LLAMA, {"method": "eagle", "model": head(HEAD), "num_speculative_tokens": 3})
    layer = (4096 + 2 * 1024) * 4096 + 4096 * 4096 + 3 * 14336 * 4096
    # Its first layer has one norm; embedding and head are the target's.
    assert draft_weight_bytes(report.settings, loaded=False) == 2 * (layer + 4096 + 4096 * 2 * 4096)
    # A 33rd layer of 8 heads x (128 + 128) x 2 B a token.
    assert report.capacity.num_gpu_blocks == CACHE // (33 * 16 * 4096)


def test_an_eagle3_head_with_a_vocabulary_of_its_own(head: Any) -> None:
    report = laid(
        LLAMA,
        {"method": "eagle3", "model": head(THREE_HEAD), "num_speculative_tokens": 3},
    )
    layer = (4096 + 2 * 1024) * 2 * 4096 + 4096 * 4096 + 3 * 14336 * 4096
    norms, fusion, table = 4 * 4096, 4096 * 3 * 4096, 32000 * 4096
    token_ids = 32000 * 8
    assert (
        draft_weight_bytes(report.settings, loaded=False)
        == 2 * (layer + norms + fusion + table) + token_ids
    )


def test_a_drafts_name_says_its_method(head: Any) -> None:
    named = head(THREE_HEAD, "some-EAGLE3-head")
    report = laid(LLAMA, {"model": named, "num_speculative_tokens": 2})
    assert report.settings.speculation is not None
    assert report.settings.speculation.method == "eagle3"


def test_a_draft_model_brings_all_of_its_layers() -> None:
    report = laid(
        "meta-llama/Llama-3.1-70B-Instruct",
        {"model": SMALL, "num_speculative_tokens": 5},
        tensor_parallel_size=4,
    )
    # Per rank and token: 80 layers of 2 heads of 128, and 16 layers of 2 heads of 64.
    page = 16 * (80 * 2 * 2 * 128 + 16 * 2 * 2 * 64) * 2
    assert report.capacity.bytes_per_block == page


def test_short_flags_say_the_same() -> None:
    long = laid(NEXT, mtp(2))
    short = laid(NEXT, spec_method="mtp", spec_tokens=2)
    typed = laid(NEXT, speculative_config='{"method": "mtp", "num-speculative-tokens": 2}')
    assert short.settings == long.settings == typed.settings


def test_what_is_no_mapping_is_said() -> None:
    with pytest.raises(InputError, match="not a mapping"):
        laid(LLAMA, speculative_config="ngram")


def test_a_draft_is_weighed_in_the_budget() -> None:
    model = "Qwen/Qwen3.5-27B"
    plain = size(model, gpu="h200-sxm", max_num_seqs=64)
    drafting = size(model, gpu="h200-sxm", max_num_seqs=64, speculative_config=mtp(1))
    assert plain.figures.budget is not None
    assert drafting.figures.budget is not None
    more = int(drafting.figures.budget.weights.value) - int(plain.figures.budget.weights.value)
    # One layer: queries with a gate, keys and values, output; a gated MLP; 2 x hidden into one.
    hidden, inter, query, key = 5120, 17408, 24 * 256, 4 * 256
    layer = (2 * query + 2 * key) * hidden + query * hidden + 3 * inter * hidden
    assert more == 2 * (layer + 2 * hidden * hidden + 2 * 256 + 5 * hidden)
    assert any("speculative" in note.text for note in drafting.assumptions)


def test_suffixes_take_the_older_runner() -> None:
    """Without overlapping batches, a window keeps one batch of tokens and not two."""
    report = laid("google/gemma-3-27b-it", {"method": "suffix"})
    assert report.settings.in_flight_tokens == report.settings.max_num_batched_tokens
    assert report.settings.num_speculative_tokens == 24


def test_more_sizes_are_captured_for_what_is_verified() -> None:
    # 4 requests: up to 4 x 2 = 8 tokens, with 3 drafted up to 32 and 1, 2, 4 whole requests.
    assert captured_sizes(4, 8192, 90) == len([1, 2, 4, 8])
    assert captured_sizes(4, 8192, 90, num_speculative_tokens=3) == len([1, 2, 4, 8, 16, 24, 32])


@pytest.mark.parametrize(
    ("model", "speculative", "error", "said"),
    [
        (LLAMA, {"method": "ngram"}, InfeasibleError, "num_speculative_tokens must be provided"),
        (LLAMA, mtp(1), NotModelledError, "no MTP layers"),
        (LLAMA, {"method": "eagle", "num_speculative_tokens": 1}, InfeasibleError, "without"),
        (LLAMA, {"method": "medusa", "num_speculative_tokens": 1}, NotModelledError, "medusa"),
        (LLAMA, {"method": "dflash", "num_speculative_tokens": 1}, NotModelledError, "dflash"),
        (LLAMA, ngram(3) | {"kv_cache_dtype": "fp8"}, NotModelledError, "kv_cache_dtype"),
        (LLAMA, ngram(3) | {"num_tokens": 3}, InputError, "has no num_tokens"),
        (LLAMA, ngram(3) | {"tensor_parallel_size": 1}, InfeasibleError, "draft_tensor"),
        (LLAMA, ngram(3) | {"draft_tensor_parallel_size": 2}, InfeasibleError, "other value"),
        (
            LLAMA,
            ngram(3) | {"prompt_lookup_min": 4, "prompt_lookup_max": 2},
            InfeasibleError,
            "prompt_lookup_min",
        ),
        (
            "Qwen/Qwen3-32B",
            {"model": SMALL, "num_speculative_tokens": 2},
            InfeasibleError,
            "same vocabulary size",
        ),
    ],
)
def test_what_is_refused_is_named(
    model: str, speculative: dict[str, Any], error: type[AdvisorError], said: str
) -> None:
    with pytest.raises(error, match=said):
        laid(model, speculative)


def test_a_key_cannot_be_given_twice() -> None:
    with pytest.raises(InfeasibleError, match="mutually exclusive"):
        laid(LLAMA, ngram(3), spec_tokens=3)


def test_a_batch_has_room_for_the_draft() -> None:
    with pytest.raises(InfeasibleError, match="not have enough slots"):
        laid(NEXT, mtp(4), max_num_batched_tokens=4, max_num_seqs=1)


def test_a_draft_model_needs_one_stage() -> None:
    with pytest.raises(NotModelledError, match="last share"):
        laid(LLAMA, {"model": SMALL, "num_speculative_tokens": 2}, pipeline_parallel_size=2)


def test_drafted_tokens_are_a_multiple_of_the_modules(head: Any) -> None:
    """With 3 modules, 2 tokens need fewer, 6 go around twice and 4 are no multiple."""
    mimo = HEAD | {"architectures": ["MiMoForCausalLM"], "num_nextn_predict_layers": 3}
    folder = head(mimo | {"num_hidden_layers": 4, "max_position_embeddings": 32768})
    for tokens in (2, 6):
        groups = laid(folder, mtp(tokens)).capacity.groups
        assert [group.num_layers for group in groups] == [4 + 3]
    with pytest.raises(InfeasibleError, match="divisible by n_predict=3"):
        laid(folder, mtp(4))


def test_a_draft_model_limits_the_context(head: Any) -> None:
    """One that is independent reads no further than its own positions; a head is stretched."""
    folder = head(HEAD, "small")
    independent = {"model": folder, "num_speculative_tokens": 2}
    assert laid(LLAMA, independent).settings.max_model_len == 2048
    assert laid(LLAMA, independent | {"method": "eagle"}).settings.max_model_len == 131072


def test_a_draft_with_states_is_not_mixed_in() -> None:
    draft = {"model": NEXT, "num_speculative_tokens": 2}
    with pytest.raises(NotModelledError, match="mamba layers"):
        laid("Qwen/Qwen3-32B", draft)


def test_latent_caches_of_another_format_take_no_other_draft(head: Any) -> None:
    draft = {"method": "eagle3", "model": head(THREE_HEAD), "num_speculative_tokens": 2}
    with pytest.raises(NotModelledError, match="keys and values"):
        laid("deepseek-ai/DeepSeek-V3.2", draft, tensor_parallel_size=8)


@given(tokens=st.integers(1, 8), tp=st.sampled_from([1, 2, 4]))
def test_drafting_never_makes_room(tokens: int, tp: int) -> None:
    """More drafted tokens never hold more, and a draft with layers holds less than n-grams."""
    plain = laid(NEXT, tensor_parallel_size=tp).capacity
    proposed = laid(NEXT, ngram(tokens), tensor_parallel_size=tp).capacity
    drafted = laid(NEXT, mtp(tokens), tensor_parallel_size=tp).capacity
    assert plain.max_concurrency >= proposed.max_concurrency > drafted.max_concurrency


def test_an_older_vllm_needs_less_room_for_a_draft() -> None:
    """0.32 counts only what a draft adds to a batch: one token for an independent model."""
    args = {"speculative_config": mtp(4), "max_num_batched_tokens": 4, "max_num_seqs": 1}
    facts, gpu = find_model(NEXT), find_gpu("h100-sxm")
    assert resolve_settings(facts, load_engine("0.32.0"), gpu, dict(args)).settings.speculation
    with pytest.raises(InfeasibleError):
        resolve_settings(facts, load_engine("0.33.0"), gpu, dict(args))


def test_an_older_vllm_does_not_overlap_batches_with_ngrams() -> None:
    """0.33 keeps two batches in flight, 0.32 one: a window keeps the fewer tokens."""
    facts, gpu = find_model("google/gemma-3-12b-it"), find_gpu("h100-sxm")
    args = {"speculative_config": ngram(3)}
    new = resolve_settings(facts, load_engine("0.33.0"), gpu, dict(args)).settings
    old = resolve_settings(facts, load_engine("0.32.0"), gpu, dict(args)).settings
    assert new.in_flight_tokens == 2 * 8192
    assert old.in_flight_tokens == 8192
    with pytest.raises(InfeasibleError, match="Async scheduling"):
        resolve_settings(facts, load_engine("0.32.0"), gpu, args | {"async_scheduling": True})
