"""Shared prefixes: whole blocks, where every group has a block end."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.api.models import find_model
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.prefix_cache import prefix_block_tokens, shared_prefix_blocks
from vllm_advisor.sizing.settings import InstanceSettings

PLAIN = InstanceSettings(
    max_model_len=32768,
    max_num_batched_tokens=2048,
    max_num_seqs=8,
    gpu_memory_utilization=0.9,
    block_size=16,
    attention_backend="FLASH_ATTN",
)


def layout(model: str, **changes: int) -> CacheLayout:
    return cache_layout(find_model(model), replace(PLAIN, **changes))


def test_whole_blocks_of_attention() -> None:
    llama = layout("llama-3.1-8b-instruct")
    assert prefix_block_tokens(llama) == 16
    assert shared_prefix_blocks(llama, 15) == 0
    assert shared_prefix_blocks(llama, 1000) == 62  # 1,000 / 16 = 62.5


def test_context_parallel_ranks_share_a_block() -> None:
    split = layout("deepseek-v3", tensor_parallel_size=8, decode_context_parallel_size=8)
    assert prefix_block_tokens(split) == 128  # 16 tokens on each of 8 ranks
    assert shared_prefix_blocks(split, 10_000) == 78  # 10,000 / 128 = 78.1


def test_windows_are_not_shared() -> None:
    gemma = layout("gemma-3-27b-it")  # one group of full attention and six that slide
    assert shared_prefix_blocks(gemma, 1600) == 100


def test_blocks_as_large_as_a_state() -> None:
    hybrid = layout("qwen3-next-80b-a3b-instruct", tensor_parallel_size=2)
    assert prefix_block_tokens(hybrid) == 576
    assert shared_prefix_blocks(hybrid, 575) == 0
    assert shared_prefix_blocks(hybrid, 1200) == 2  # states are each request's own
