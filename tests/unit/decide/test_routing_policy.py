"""The routing policy of a plan: thresholds, names, fallbacks, conversations and costs, by hand."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from vllm_advisor.api.planning import plan
from vllm_advisor.routing import Router
from vllm_advisor.types.plan import Plan
from vllm_advisor.types.routing import Bound, RoutingPolicy

CHAT = {
    "name": "chat",
    "prompt_tokens": {"p50": 600, "p95": 2000, "max": 6000},
    "output_tokens": {"p50": 200, "p95": 500, "max": 1000},
    "concurrent_requests": 20,
    "slo": {"ttft_ms": 1000},
}
DOCUMENTS = {
    "name": "documents",
    "prompt_tokens": {"p50": 90_000, "p95": 110_000, "max": 120_000},
    "output_tokens": {"p50": 300, "p95": 600, "max": 1000},
    "concurrent_requests": 2,
}
LOOKUP = {**DOCUMENTS, "name": "lookups", "needs": "lookup"}
RAG = {"available": True, "top_k": 5, "chunk_tokens": 800, "question_tokens": 300}


def planned(*classes: dict[str, Any], **keys: Any) -> Plan:
    data = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "hardware": {"gpu": "h100-sxm", "count": 4},
        "classes": list(classes),
        **keys,
    }
    return plan("w.yaml", text=json.dumps(data, indent=1)).plan


def policy_of(*classes: dict[str, Any], **keys: Any) -> RoutingPolicy:
    found = planned(*classes, **keys).routing
    assert found is not None
    return found


def figures(found: Plan) -> dict[str, Any]:
    return {f.id: f.value for f in found.figures}


def test_length_leaves_room_for_the_longest_answer() -> None:
    """7,168 - 1,000 = 6,168 and 121,856 - 1,000 = 120,856; 6,168 x 4 x 0.75 = 18,504 bytes."""
    policy = policy_of(CHAT, DOCUMENTS)
    limits = {r.name: (r.max_prompt_tokens, r.bound_by) for r in policy.routes}
    assert limits == {"chat": (6168, Bound.LENGTH), "long-docs": (120_856, Bound.LENGTH)}
    chat = policy.route("chat")
    assert (chat.on_overflow, chat.on_outage) == ("long-docs", "long-docs")
    assert chat.max_prompt_bytes == 18_504
    assert policy.route("long-docs").on_overflow is None
    assert policy.by_length == ("chat", "long-docs")


def test_the_whole_cache_bounds_what_many_may_send() -> None:
    """600 at once: the largest prompt of which all fit into the blocks, with 1,000 to answer."""
    found = planned({**CHAT, "concurrent_requests": 600}, DOCUMENTS)
    chat = found.deployment.instances[0]
    share = -(-600 // chat.replicas)
    blocks = chat.figures.capacity.num_gpu_blocks
    by_capacity = figures(found)["routing.chat.prompt-by-capacity"]

    def taken(prompt: int) -> int:
        return 1 + share * -(-(prompt + 1000) // 16)

    assert taken(by_capacity) <= blocks < taken(by_capacity + 1)
    # Its own classes are planned for at their p95: they stay, whatever the bound says.
    route = found.routing.route("chat")
    assert by_capacity < 6000
    assert (route.max_prompt_tokens, route.bound_by) == (6000, Bound.CAPACITY)


def test_a_target_bounds_what_can_be_read_in_time() -> None:
    """Llama-3.1-8B: matrices of 32 x (41,943,040 + 176,160,768) = 6,979,321,856 parameters.

    A token passes each twice; the head's 128,256 x 4,096 are passed once; each of 32 layers has
    n (n + 1) / 2 pairs with 32 heads x 2 x (128 + 128) operations. An L4 does 121e12 a second.
    """
    quick = {**CHAT, "concurrent_requests": 2, "slo": {"ttft_ms": 786}}
    found = planned(quick, DOCUMENTS, hardware={"gpu": "l4", "count": 8})
    chat = found.deployment.instances[0]

    def operations(n: int) -> int:
        linear = 2 * n * 6_979_321_856 + 2 * 128_256 * 4096
        return linear + 32 * (n * (n + 1) // 2) * 32 * 2 * 256

    by_time = figures(found)["routing.chat.prompt-by-time"]
    args = chat.engine_args.as_dict()
    peak = 242e12 if "fp8" in (args.get("kv_cache_dtype"), args.get("quantization")) else 121e12
    assert operations(by_time) <= peak * chat.gpus * 0.786 < operations(by_time + 1)
    assert 6000 < by_time < 6168
    route = found.routing.route("chat")
    assert (route.max_prompt_tokens, route.bound_by) == (by_time, Bound.SLO)


def test_nothing_but_length_bounds_the_last_instance() -> None:
    found = planned({**CHAT, "concurrent_requests": 600})
    assert set(figures(found)) >= {"routing.chat.prompt-by-length"}
    assert not {"routing.chat.prompt-by-capacity", "routing.chat.prompt-by-time"} & set(
        figures(found)
    )
    assert found.routing.route("chat").bound_by is Bound.LENGTH


def test_retrieval_comes_before_the_long_instance() -> None:
    policy = policy_of(CHAT, LOOKUP, DOCUMENTS, rag=RAG)
    assert [r.name for r in policy.routes] == ["chat", "rag", "long-docs"]
    assert policy.route("rag").instance == "chat"
    assert policy.retrieval is not None
    assert policy.retrieval.prompt_tokens == 300 + 5 * 800
    assert policy.retrieval.fallback == "long-docs"
    classes = {c.name: (c.route, c.pinned, c.retrieve, c.fallback) for c in policy.classes}
    assert classes == {
        "chat": ("chat", False, False, None),
        "lookups": ("rag", False, True, "long-docs"),
        "documents": ("long-docs", True, False, None),
    }


def test_without_a_long_instance_nothing_takes_what_is_longer() -> None:
    policy = policy_of(CHAT, LOOKUP, rag=RAG)
    assert policy.route("chat").on_overflow is None
    assert policy.retrieval is not None
    assert policy.retrieval.fallback is None
    (lookups,) = (c for c in policy.costs if c.request_class == "lookups")
    assert [way.route for way in lookups.ways] == ["rag", None]


def test_one_instance_answers_to_every_name() -> None:
    policy = policy_of(CHAT, DOCUMENTS, constraints={"max_gpus": 1})
    assert [r.name for r in policy.routes] == ["general", "chat", "long-docs"]
    assert {r.instance for r in policy.routes} == {"general"}
    assert policy.by_length == ("general",)
    assert Router(policy).decide(prompt_tokens=100_000).model == "general"


def test_long_answers_may_leave_the_long_instance_less_room() -> None:
    """Prompts of 500 and answers of 60,000: the length of a prompt tells nothing then."""
    essays = {
        "name": "essays",
        "prompt_tokens": 500,
        "output_tokens": {"p50": 30_000, "p95": 50_000, "max": 60_000},
        "concurrent_requests": 2,
    }
    policy = policy_of(CHAT, essays)
    assert policy.by_length == ("chat",)
    assert policy.route("chat").on_overflow is None
    assert Router(policy).decide(prompt_tokens=100, request_class="essays").route == "long-docs"


def test_what_is_said_of_conversations_and_bytes() -> None:
    policy = policy_of(CHAT, DOCUMENTS)
    talk = policy.conversation
    assert talk is not None
    # An eighth of 6,168 for the summary; 4 x (1 - 0.25) bytes per token where nobody counts.
    assert dataclasses.astuple(talk) == (6168, 4, 771, 3.0)
    wishes = {
        "bytes_per_token": 3.5,
        "bytes_margin": 0.1,
        "summarise_above_tokens": 4000,
        "keep_last_turns": 6,
        "summary_tokens": 300,
    }
    found = planned(CHAT, DOCUMENTS, routing=wishes)
    assert dataclasses.astuple(found.routing.conversation) == (4000, 6, 300, pytest.approx(3.15))
    assert found.routing.route("chat").max_prompt_bytes == int(6168 * 3.5 * 0.9)
    sources = {d.id: str(d.source) for d in found.decisions}
    assert sources["routing.bytes-per-token"].startswith("user:w.yaml:")
    assert sources["routing.conversation"].startswith("user:w.yaml:")
    assert "routing.bytes-per-token" not in {a.id for a in found.assumptions}
    assert "routing.bytes-per-token" in {a.id for a in planned(CHAT, DOCUMENTS).assumptions}


def test_no_history_is_let_in_that_is_longer_than_what_is_taken() -> None:
    found = planned(CHAT, DOCUMENTS, routing={"summarise_above_tokens": 50_000})
    assert found.routing.conversation.summarise_above_tokens == 6168
    (decision,) = (d for d in found.decisions if d.id == "routing.conversation")
    assert "50,000" in decision.reason


def test_embeddings_have_no_conversation() -> None:
    policy = policy_of(CHAT, model="Qwen/Qwen3-8B", uses=["embeddings"])
    assert policy.conversation is None
    assert [r.name for r in policy.routes] == ["embed"]


def test_costs_by_hand() -> None:
    """3 USD per million prompt tokens, 15 per million of the answer.

    Passages: (4,300 x 3 + 300 x 15) / 1e6 = 0.0174. Whole: (90,000 x 3 + 300 x 15) / 1e6 = 0.2745.

    Reuse: the document is 90,000 - 300 = 89,700 tokens, of which 89,696 are whole blocks of 16:
    read again it takes 304. (90,000 - 304) / (4,300 - 304) = 22.45: from 23 requests.

    Quality: 85,700 are saved, and a failure costs 90,000 and an answer in vain of 300 x 5:
    1 - 85,700 / 91,500 = 0.0634.
    """
    prices = {"input_usd_per_million_tokens": 3.0, "output_usd_per_million_tokens": 15.0}
    found = planned(CHAT, LOOKUP, DOCUMENTS, rag=RAG, prices=prices)
    costs = {c.request_class: c for c in found.routing.costs}
    passages, whole = costs["lookups"].ways
    assert (passages.route, passages.prompt_tokens, passages.usd) == ("rag", 4300, 0.0174)
    assert (whole.route, whole.prompt_tokens, whole.usd) == ("long-docs", 90_000, 0.2745)
    assert costs["lookups"].break_even_requests_per_document == 23
    assert costs["lookups"].break_even_retrieval_quality == 0.0634
    assert figures(found)["cost.lookups.break_even_requests_per_document"] == 23
    (chat,) = costs["chat"].ways
    assert (chat.way, chat.prompt_tokens, chat.usd) == ("whole prompt", 600, 0.0048)
    assert any("From 23 requests about one document" in note for note in found.notes)


def test_documents_that_are_read_again_are_found_in_the_cache() -> None:
    """Ten requests: 90,000 first, then 304 each: 92,736 / 10 = 9,273.6 computed on average.

    Cached: 9 x 89,696 / 10 = 80,726.4. Saved by passages: 9,274 - 4,300 = 4,974 of 90,000 + 1,500:
    retrieval has to answer 94.57 % of the questions.
    """
    prices = {"input_usd_per_million_tokens": 3.0, "output_usd_per_million_tokens": 15.0}
    again = {**LOOKUP, "requests_per_document": 10}
    found = policy_of(CHAT, again, DOCUMENTS, rag=RAG, prices=prices)
    (cost,) = (c for c in found.costs if c.request_class == "lookups")
    assert cost.ways[1].cached_tokens == 80_726
    assert cost.break_even_retrieval_quality == 0.9457
    many = {**LOOKUP, "requests_per_document": 30}
    (cost,) = (
        c
        for c in policy_of(CHAT, many, DOCUMENTS, rag=RAG, prices=prices).costs
        if c.request_class == "lookups"
    )
    assert cost.break_even_retrieval_quality is None, "above 23 the whole document is cheaper"


def test_a_price_of_cached_tokens_moves_the_break_even() -> None:
    """At a tenth of the price, reading again takes 304 + 8,969.6 = 9,273.6: more than passages."""
    prices = {"input_usd_per_million_tokens": 3.0, "cached_input_usd_per_million_tokens": 0.3}
    found = planned(CHAT, LOOKUP, DOCUMENTS, rag=RAG, prices=prices)
    (cost,) = (c for c in found.routing.costs if c.request_class == "lookups")
    assert cost.break_even_requests_per_document is None
    assert any("never makes the whole document" in note for note in found.notes)


def test_every_number_of_the_policy_has_its_reason() -> None:
    found = planned(CHAT, LOOKUP, DOCUMENTS, rag=RAG)
    ids = {d.id: d for d in found.decisions}
    for instance in found.deployment.instances:
        decision = ids[f"routing.{instance.name}.max-prompt-tokens"]
        routes = [r for r in found.routing.routes if r.instance == instance.name]
        assert {r.max_prompt_tokens for r in routes} == {decision.value}
        assert set(decision.because) <= set(figures(found))
