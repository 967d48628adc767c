"""What the planner decides, asked through workloads a person would write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from vllm_advisor.api.planning import plan
from vllm_advisor.types.plan import Plan

CHAT = {
    "name": "chat",
    "prompt_tokens": {"p50": 600, "p95": 2000, "max": 6000},
    "output_tokens": {"p50": 200, "p95": 500, "max": 1000},
    "concurrent_requests": 20,
    "slo": {"ttft_ms": 1000},
}
DOCUMENTS = {
    "name": "documents",
    "prompt_tokens": {"p50": 90000, "p95": 110000, "max": 120000},
    "output_tokens": {"p50": 300, "p95": 600, "max": 1000},
    "concurrent_requests": 2,
}


def planned(*classes: dict[str, Any], **keys: Any) -> Plan:
    data = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "hardware": {"gpu": "h100-sxm", "count": 4},
        "classes": list(classes),
        **keys,
    }
    return plan("w.yaml", text=yaml.safe_dump(data)).plan


def values(found: Plan, name: str) -> dict[str, Any]:
    (instance,) = [i for i in found.deployment.instances if i.name == name]
    return instance.engine_args.as_dict()


def test_short_requests_need_no_long_instance() -> None:
    found = planned(CHAT)
    assert [i.name for i in found.deployment.instances] == ["chat"]
    assert values(found, "chat")["max_model_len"] == 7168  # 6,000 + 1,000, in steps of 1,024


def test_chat_and_documents_are_kept_apart_when_somebody_waits() -> None:
    found = planned(CHAT, DOCUMENTS)
    assert [i.name for i in found.deployment.instances] == ["chat", "long-docs"]
    (other,) = [a for a in found.alternatives if a.subject == "deployment"]
    assert other.feasible
    assert other.gpus == 1
    assert "delay the short requests" in other.why


def test_one_gpu_takes_both_and_protects_the_short_ones() -> None:
    found = planned(CHAT, DOCUMENTS, constraints={"max_gpus": 1})
    (instance,) = found.deployment.instances
    args = instance.engine_args.as_dict()
    assert instance.role == "general"
    assert args["long_prefill_token_threshold"] < args["max_num_batched_tokens"]
    assert args["max_model_len"] > 120_000


def test_lookup_goes_through_retrieval_where_there_is_one() -> None:
    lookup = {**DOCUMENTS, "needs": "lookup"}
    rag = {"available": True, "top_k": 5, "chunk_tokens": 800, "question_tokens": 300}
    found = planned(lookup, rag=rag)
    (route,) = found.routes
    assert (route.strategy, route.instance, route.retrieve) == ("rag-first", "chat", True)
    # 300 + 5 x 800 = 4,300 of prompt and 1,000 of answer: 5,300, rounded up to 6,144.
    assert values(found, "chat")["max_model_len"] == 6144
    figures = {f.id: f.value for f in found.figures}
    assert figures["cost.documents.rag_tokens"] == 4300
    assert figures["cost.documents.full_context_to_rag_ratio"] == 20.9  # 90,000 / 4,300


def test_lookup_without_retrieval_reads_the_whole_document() -> None:
    found = planned({**DOCUMENTS, "needs": "lookup"})
    (route,) = found.routes
    assert (route.strategy, route.instance) == ("whole-context", "long-docs")


def test_exact_recall_keeps_a_way_to_the_whole_document() -> None:
    rag = {"available": True, "top_k": 5, "chunk_tokens": 800, "question_tokens": 300}
    lookup = {**DOCUMENTS, "needs": "lookup", "exact_recall": True, "slo": {"ttft_ms": 3000}}
    found = planned(lookup, rag=rag)
    (route,) = found.routes
    assert route.fallback == "long-docs"
    never = planned({**DOCUMENTS, "needs": "recent_only", "exact_recall": True})
    assert never.routes[0].strategy == "whole-context"


def test_fp8_cache_is_taken_only_when_it_saves_gpus() -> None:
    few = planned({**DOCUMENTS, "concurrent_requests": 2})
    assert "kv_cache_dtype" not in values(few, "long-docs")
    many = planned(
        {**DOCUMENTS, "concurrent_requests": 6}, constraints={"weight_quantization": "forbidden"}
    )
    assert values(many, "long-docs")["kv_cache_dtype"] == "fp8"
    assert many.cost.gpus == 1
    forbidden = planned(
        {**DOCUMENTS, "concurrent_requests": 6},
        constraints={"weight_quantization": "forbidden", "kv_cache_dtypes": ["auto"]},
    )
    assert "kv_cache_dtype" not in values(forbidden, "long-docs")
    assert forbidden.cost.gpus == 2


def test_littles_law_makes_concurrency_of_a_rate() -> None:
    rate = {**CHAT, "requests_per_second": 4, "slo": {"ttft_ms": 500, "itl_ms": 50}}
    del rate["concurrent_requests"]
    figures = {f.id: f for f in planned(rate).figures}
    asked = figures["chat.concurrency.chat"]
    # "4 requests/s x 2.2 s in the system = 8.9, and two standard deviations": 8.9 + 2 x 2.98 = 14.9
    seconds = float(asked.formula.split(" x ")[1].split(" s ")[0])
    running = float(asked.formula.split(" = ")[1].split(",")[0])
    assert running == pytest.approx(4 * seconds, abs=0.3)
    assert asked.value == pytest.approx(running + 2 * running**0.5, abs=1)


def test_without_a_known_speed_the_targets_say_how_long_a_request_stays() -> None:
    # The arithmetic peak of GB10 is not published.
    gb10 = {"gpu": "gb10", "count": 1}
    rate = {**CHAT, "requests_per_second": 4, "slo": {"ttft_ms": 500, "itl_ms": 20}}
    del rate["concurrent_requests"]
    figures = {f.id: f.value for f in planned(rate, hardware=gb10).figures}
    # 4 / s x (0.5 s + 0.020 s x 200 tokens) = 18
    assert figures["chat.concurrency.chat"] == 18
    stated = {**rate, "slo": {"e2e_ms": 10_000}}
    found = planned(stated, hardware=gb10)
    assert {f.id: f.value for f in found.figures}["chat.concurrency.chat"] == 40
    assert any("is not modelled" in note for note in found.notes)
    guessed = planned({k: v for k, v in rate.items() if k != "slo"}, hardware=gb10)
    assert "chat.time-in-system" in {a.id for a in guessed.assumptions}


def test_replicas_share_the_requests() -> None:
    # One L4 holds a few 7K requests; thirty at once need several.
    found = planned(
        {**CHAT, "concurrent_requests": 40},
        hardware={"gpu": "l4", "count": 8},
        constraints={"weight_quantization": "forbidden", "kv_cache_dtypes": ["auto"]},
    )
    (instance,) = found.deployment.instances
    assert instance.replicas * instance.gpus > 1
    assert instance.engine_args.get("max_num_seqs") >= -(-40 // instance.replicas)


@pytest.mark.parametrize(
    ("keys", "because", "nearest"),
    [
        ({"constraints": {"budget_usd_per_hour": 1.0}}, "the budget is 1.00", "USD per hour"),
        ({"hardware": {"gpu": "t4", "count": 1}}, "are safe to count on", "x "),
        ({"vllm_version": "0.33.0", "uses": ["vision"]}, "takes text only", "vision-language"),
    ],
)
def test_infeasible_plans_say_why_and_what_would_work(
    keys: dict[str, Any], because: str, nearest: str
) -> None:
    found = planned(CHAT, **keys)
    assert not found.feasible
    assert not found.deployment.instances
    assert because in " ".join(found.infeasible_because)
    assert nearest in found.nearest


def test_what_is_longer_than_the_model_reads_is_infeasible() -> None:
    book = {**DOCUMENTS, "prompt_tokens": 1_000_000}
    found = planned(book)
    assert not found.feasible
    assert "reads 131,072 at most" in found.infeasible_because[0]
    assert "retrieval" in found.nearest


def test_nearest_was_really_tried() -> None:
    small = {"gpu": "rtx-4090", "count": 1}
    untimed = {**CHAT, "slo": {}}
    big = planned(untimed, model="meta-llama/Llama-3.3-70B-Instruct", hardware=small,
                  constraints={"weight_quantization": "forbidden"})  # fmt: skip
    assert not big.feasible
    count = int(big.nearest.split(" x rtx-4090")[0])
    again = planned(untimed, model="meta-llama/Llama-3.3-70B-Instruct",
                    hardware={"gpu": "rtx-4090", "count": count},
                    constraints={"weight_quantization": "forbidden"})  # fmt: skip
    assert again.feasible


def test_other_processes_lower_the_utilisation() -> None:
    described = {
        "name": "NVIDIA H100 80GB HBM3",
        "gpu_memory": "79GiB",
        "compute_capability": "9.0",
        "count": 1,
        "nodes": 1,
        "interconnect": "unknown",
        "memory_used": "20GiB",
    }
    found = planned(CHAT, hardware={"described": described})
    args = values(found, "chat")
    # (79 - 20) / 79 = 0.7468: 0.74 in hundredths, below the default of 0.92.
    assert args["gpu_memory_utilization"] == 0.74


def test_features_bring_the_models_own_flags() -> None:
    found = planned(
        CHAT, model="Qwen/Qwen3-8B", uses=["tool_calling", "reasoning", "structured_output"]
    )
    args = values(found, "chat")
    assert args["enable_auto_tool_choice"] is True
    assert args["tool_call_parser"] == "hermes"
    assert args["reasoning_parser"] == "qwen3"


def test_a_file_of_vllms_repository_is_no_flag() -> None:
    found = planned(CHAT, uses=["tool_calling"])
    assert "chat_template" not in values(found, "chat")
    assert any(d.subject == "chat-template" for d in found.decisions)


def test_a_feature_without_a_known_parser_is_said() -> None:
    found = planned(CHAT, uses=["reasoning"])  # Llama 3.1 has no reasoning parser
    assert "reasoning_parser" not in values(found, "chat")
    assert "reasoning-parser" in {a.id for a in found.assumptions}


def test_too_old_a_version_is_refused() -> None:
    found = planned(CHAT, model="openai/gpt-oss-120b", hardware={"gpu": "h100-sxm", "count": 4})
    assert found.feasible
    fallen = planned(CHAT, vllm_version="0.34.1")
    assert "vllm-version-not-known" in {a.id for a in fallen.assumptions}
    assert fallen.confidence == "low"


def test_yarn_overrides_both_keys_on_the_long_instance_only() -> None:
    found = planned(CHAT, {**DOCUMENTS, "prompt_tokens": 100_000}, model="Qwen/Qwen3-8B")
    overrides = values(found, "long-docs")["hf_overrides"]
    # 101,000 / 32,768 = 3.08: factor 4; 4 x 32,768 = 131,072.
    assert overrides["rope_parameters"]["factor"] == 4.0
    assert overrides["rope_parameters"]["original_max_position_embeddings"] == 32768
    assert overrides["max_position_embeddings"] == 131072
    assert "hf_overrides" not in values(found, "chat")


def test_prices_of_the_user_win() -> None:
    assert planned(CHAT, prices={"gpu_hour_usd": 2.0}).cost.usd_per_hour == 2.0
    assert planned(CHAT, prices={"gpu_hour_usd": 2.0}).cost.price_source.startswith("user:w.yaml:")
    assert planned(CHAT).cost.price_source.startswith("profile:gpus/h100-sxm#prices")


SEE = {"model": "Qwen/Qwen3-VL-8B-Instruct", "hardware": {"gpu": "l40s", "count": 1}}


def test_images_are_limited_and_videos_left_out() -> None:
    found = planned(CHAT, **SEE, uses=["vision"], images_per_prompt=3)
    assert values(found, "chat")["limit_mm_per_prompt"] == {"image": 3, "video": 0}


def test_a_vision_model_for_text_only() -> None:
    found = planned(CHAT, **SEE)
    assert values(found, "chat")["language_model_only"] is True


def test_embeddings_take_the_pooling_runner() -> None:
    found = planned(CHAT, model="Qwen/Qwen3-8B", uses=["embeddings"])
    args = values(found, "embed")
    assert args["runner"] == "pooling"
    assert "enable_prefix_caching" not in args
