"""Plans for models whose cache is replicated, windowed or recurrent."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from vllm_advisor.api.planning import plan
from vllm_advisor.types.plan import Instance, Plan

USERS = {
    "name": "chat",
    "prompt_tokens": {"p50": 600, "p95": 3000, "max": 6000},
    "output_tokens": {"p50": 400, "p95": 1000, "max": 2000},
    "concurrent_requests": 500,
    "shared_prefix_tokens": 500,
    "slo": {"ttft_ms": 2000, "itl_ms": 150},
}
REPORTS = {
    "name": "reports",
    "prompt_tokens": {"p50": 80000, "p95": 120000, "max": 128000},
    "output_tokens": {"p50": 800, "p95": 1500, "max": 3000},
    "concurrent_requests": 12,
}
V3 = "deepseek-ai/DeepSeek-V3"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


def planned(request: dict[str, Any], model: str, gpu: str, count: int = 8, **keys: Any) -> Plan:
    hardware = {"gpu": gpu, "count": count, "nodes": keys.pop("nodes", 1)}
    data = {"model": model, "hardware": hardware, "classes": [request], "vllm_version": "0.33.0"}
    return plan("w.yaml", text=yaml.safe_dump(data | keys)).plan


def only(found: Plan) -> tuple[Instance, dict[str, Any], dict[str, Any]]:
    """The one instance, its arguments, its figures by their last part."""
    (instance,) = found.deployment.instances
    figures = {f.id.removeprefix(f"{instance.name}."): f.value for f in found.figures}
    return instance, instance.engine_args.as_dict(), figures


def test_many_short_chats_get_engines_with_a_cache_of_their_own() -> None:
    found = planned(USERS, V3, "h200-sxm")
    instance, args, figures = only(found)
    assert args["data_parallel_size"] == 8
    assert args["enable_expert_parallel"] is True
    assert "tensor_parallel_size" not in args
    assert (instance.gpus, instance.replicas, found.cost.gpus) == (8, 1, 8)
    # 500 over 8 engines: 63 each; x 1.25 = 78, in eights 80.
    assert args["max_num_seqs"] == 80
    # A request at p95: ceil(4,000 / 16) = 250 blocks, 31 of them (500 / 16) held once per engine:
    # 1 + 31 + 63 x 219.
    assert figures["kv.blocks_needed"] == 13_829
    # A block: 16 tokens x 576 x 2 B x 61 layers.
    blocks = figures["memory.kv_cache"] // (16 * 576 * 2 * 61)
    assert figures["kv.blocks"] == blocks
    # ceil(8,192 / 16) = 512 blocks for a request of max_model_len, in each of 8 engines.
    assert figures["kv.total_concurrency"] == round(blocks / 512 * 8, 2)
    decision = next(d for d in found.decisions if d.subject == "data_parallel_size")
    rejected = {r.option: r.why for r in decision.rejected}
    # 1 + 31 + 500 x 219: one engine holds all of them.
    assert "need 109,532 KV cache blocks" in rejected["TP=8, weights as published, 16-bit KV"]
    assert any("DCP=" in option and "not modelled" in why for option, why in rejected.items())
    assert any("DCP=" in a.name and a.feasible for a in found.alternatives)


def test_few_long_prompts_get_their_cache_split_by_tokens() -> None:
    found = planned(REPORTS, V3, "h200-sxm", constraints={"kv_cache_dtypes": ["auto"]})
    _, args, figures = only(found)
    assert args["tensor_parallel_size"] == 8
    assert args["decode_context_parallel_size"] > 1
    assert "data_parallel_size" not in args
    per = 16 * args["decode_context_parallel_size"]
    # 121,500 tokens at p95 over the ranks of the context.
    assert figures["kv.blocks_needed"] == 1 + 12 * -(-121_500 // per)
    other = next(a for a in found.alternatives if "DP=8" in a.name)
    assert other.feasible
    assert "one engine alone would read" in other.why


def test_a_shared_prefix_is_split_by_tokens_too() -> None:
    shared = {**REPORTS, "shared_prefix_tokens": 10_000}
    _, args, figures = only(planned(shared, V3, "h200-sxm"))
    per = 16 * args["decode_context_parallel_size"]
    once, each = 10_000 // per, -(-121_500 // per)
    assert figures["kv.blocks_needed"] == 1 + once + 12 * (each - once)


def test_replicas_of_engines_stand_on_a_node_each() -> None:
    many, limits = {**USERS, "concurrent_requests": 1500}, {"kv_cache_dtypes": ["auto"]}
    found = planned(many, V3, "h200-sxm", nodes=2, constraints=limits)
    instance, args, _ = only(found)
    assert (instance.replicas, instance.gpus, args["data_parallel_size"]) == (2, 8, 8)
    assert "nnodes" not in args
    assert args["max_num_seqs"] == 120  # ceil(1,500 / 16) = 94; x 1.25 = 117


@pytest.mark.parametrize(
    ("model", "tried"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", False),  # dense: engines would share nothing
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", False),  # 8 KV heads: TP 8 repeats none
        ("Qwen/Qwen3-30B-A3B", True),  # 4 KV heads over 8 GPUs
    ],
)
def test_engines_are_tried_where_they_share_experts_and_tp_repeats_heads(
    model: str, tried: bool
) -> None:
    found = planned({**USERS, "concurrent_requests": 40}, model, "h100-sxm")
    assert any("DP=" in a.name for a in found.alternatives) is tried


def test_windows_hold_the_tokens_in_flight() -> None:
    """Gemma 3 27B at 128K: 10 full and 52 sliding layers, 1 + 6 groups of up to 10."""
    books = {**REPORTS, "prompt_tokens": {"p50": 80000, "p95": 115000, "max": 128000},
             "output_tokens": {"p50": 800, "p95": 1500, "max": 2500},
             "concurrent_requests": 6}  # fmt: skip
    limits = {"kv_cache_dtypes": ["auto"], "weight_quantization": "forbidden"}
    found = planned(books, "google/gemma-3-27b-it", "h100-sxm", 4, constraints=limits)
    _, args, figures = only(found)
    assert args["max_num_batched_tokens"] == 2048
    # ceil(116,500 / 16) = 7,282; window 1,024 - 1 + 2 x 2,048 = 5,119: 320 + 1 blocks, six times.
    assert figures["kv.blocks_needed"] == 1 + 6 * (7282 + 6 * 321)
    # 1,023 + 2 x 8,192 = 17,407: 1,088 + 1 blocks.
    assert figures["kv.blocks"] < 1 + 6 * (7282 + 6 * 1089)
    assert found.cost.gpus == 2
    assert any(a.gpus == 4 and "chunks" not in a.name for a in found.alternatives)


def test_a_prefix_shorter_than_a_block_of_states_is_no_hit() -> None:
    """Qwen3-Next at TP 2: blocks of 576 tokens, 1 + 3 groups, 3 states for each of the latter."""
    few = {**USERS, "concurrent_requests": 200, "prompt_tokens": {"p50": 1500, "p95": 4000,
           "max": 6000}, "shared_prefix_tokens": 400}  # fmt: skip
    found = planned(few, NEXT, "h100-sxm")
    _, args, figures = only(found)
    assert args["tensor_parallel_size"] == 2
    # ceil(5,000 / 576) = 9 blocks and 3 x 3 states, nothing shared.
    assert figures["kv.blocks_needed"] == 1 + 200 * 18
    note = next(a for a in found.assumptions if a.id == "chat.shared-prefix")
    assert "400 tokens is never a hit" in note.text
    assert "blocks of 576 tokens" in note.text
    reason = next(d.reason for d in found.decisions if d.dest == "enable_prefix_caching")
    assert "never a hit" in reason
    assert "3 state blocks instead of 1" in reason
    assert "held once" not in reason


def test_a_longer_prefix_is_held_in_whole_blocks_of_states() -> None:
    agents = {**REPORTS, "prompt_tokens": {"p50": 50000, "p95": 100000, "max": 120000},
              "output_tokens": {"p50": 400, "p95": 1000, "max": 2000},
              "concurrent_requests": 20, "shared_prefix_tokens": 9000}  # fmt: skip
    found = planned(agents, NEXT, "h100-sxm")
    _, _, figures = only(found)
    # 9,000 / 576 = 15 blocks held once; ceil(101,000 / 576) = 176 and 9 states for each request.
    assert figures["kv.blocks_needed"] == 1 + 15 + 20 * (176 + 9 - 15)
    note = next(a for a in found.assumptions if a.id == "reports.shared-prefix")
    assert "8,640 of the 9,000 tokens" in note.text
    assert found.confidence != "high"


def test_too_many_sequences_for_the_states_of_one_gpu_ask_for_replicas() -> None:
    """504 sequences are more than one GPU's blocks, and 63 in each of 8 replicas are not."""
    batch = {**USERS, "shared_prefix_tokens": 0, "prompt_tokens": {"p50": 300, "p95": 600,
             "max": 2000}, "output_tokens": {"p50": 100, "p95": 200, "max": 500}, "slo": {},
             "concurrent_requests": 400, "objective": "throughput"}  # fmt: skip
    limits = {"kv_cache_dtypes": ["auto"], "weight_quantization": "forbidden"}
    found = planned(batch, "Qwen/Qwen3.5-27B", "h100-sxm", constraints=limits)
    one = next(a for a in found.alternatives if a.name.startswith("TP=1,"))
    assert one.gpus == 8
    assert "over 8 replicas" in one.why
