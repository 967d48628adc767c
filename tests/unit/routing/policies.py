"""Policies to decide by, written out."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.types.routing import (
    Bound,
    ByteCount,
    ClassRoute,
    ConversationPolicy,
    PolicyRoute,
    Retrieval,
    RoutingPolicy,
)
from vllm_advisor.types.routing_costs import TokenPrices
from vllm_advisor.types.workload import Needs

# 7,168 - 1,000 = 6,168 tokens for a prompt; 6,168 x 4 bytes x (1 - 0.25) = 18,504 bytes.
CHAT = PolicyRoute(
    name="chat",
    instance="chat",
    role="short",
    max_model_len=7168,
    reserved_output_tokens=1000,
    max_prompt_tokens=6168,
    max_prompt_bytes=18_504,
    bound_by=Bound.LENGTH,
    on_overflow="long-docs",
    on_outage="long-docs",
    reason="short prompts",
)
RAG = replace(CHAT, name="rag", retrieved=True, reason="passages instead of documents")
# 122,880 - 2,000 = 120,880 tokens.
LONG = PolicyRoute(
    name="long-docs",
    instance="long-docs",
    role="long-document",
    max_model_len=122_880,
    reserved_output_tokens=2000,
    max_prompt_tokens=120_880,
    max_prompt_bytes=362_640,
    bound_by=Bound.LENGTH,
    reason="whole documents",
)
CONTRACTS = RoutingPolicy(
    plan="contract-review",
    model="meta-llama/Llama-3.1-8B-Instruct",
    routes=(CHAT, RAG, LONG),
    by_length=("chat", "long-docs"),
    byte_count=ByteCount(bytes_per_token=4.0, margin=0.25, body_limit_bytes=4_194_304),
    classes=(
        ClassRoute(name="chat", needs=Needs.WHOLE_DOCUMENT, route="chat", strategy="standard"),
        ClassRoute(
            name="clause-lookup",
            needs=Needs.LOOKUP,
            route="rag",
            strategy="rag-first",
            retrieve=True,
            fallback="long-docs",
        ),
        ClassRoute(
            name="contract-review",
            needs=Needs.WHOLE_DOCUMENT,
            route="long-docs",
            strategy="whole-context",
            pinned=True,
        ),
    ),
    retrieval=Retrieval(
        route="rag", top_k=5, chunk_tokens=800, question_tokens=300, fallback="long-docs"
    ),
    conversation=ConversationPolicy(
        summarise_above_tokens=6168, keep_last_turns=4, summary_tokens=500, bytes_per_token=3.0
    ),
    prices=TokenPrices(input=3.0, output=15.0),
)
