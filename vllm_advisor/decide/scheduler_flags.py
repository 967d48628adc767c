"""Decisions about the scheduler: sequences, chunks, prefix caching, long prefills."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Candidate, Kind
from vllm_advisor.decide.prefix_caching import prefix_caching_flags
from vllm_advisor.decide.reasons import Scope, counted, formula, vllm
from vllm_advisor.decide.search import Search
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.source import Source, SourceKind


def scheduler_flags(
    scope: Scope, search: Search, chosen: Candidate, *, shares_with_longer: bool
) -> list[Decision]:
    """max_num_seqs, max_num_batched_tokens, prefix caching, long-prefill threshold."""
    settings = chosen.settings
    total = sum(d.concurrency for d in chosen.demands)
    out = [
        scope.decide(
            "max_num_seqs",
            settings.max_num_seqs,
            f"{total} requests at once over {counted(chosen.replicas, 'replica')}"
            + (f" of {settings.data_parallel_size} engines" if chosen.kind is Kind.DATA else "")
            + ", a quarter more, in eights; the profile run pays activation memory for every "
            "sequence",
            formula("sequences"),
            because=(f"{scope.name}.memory.activations",),
            rejected=(
                Rejected(
                    option=f"{search.defaults.max_num_seqs} (default of this GPU)",
                    why="activation memory that the KV cache can use",
                ),
            )
            if settings.max_num_seqs < search.defaults.max_num_seqs
            else (),
        ),
        scope.decide(
            "max_num_batched_tokens",
            settings.max_num_batched_tokens,
            chosen.chunk.reason,
            Source(SourceKind.DOCS, "docs.vllm.ai/en/latest/configuration/optimization"),
        ),
    ]
    out += prefix_caching_flags(scope, search, chosen)
    if shares_with_longer:
        threshold = settings.max_num_batched_tokens // 2
        out.append(
            scope.decide(
                "long_prefill_token_threshold",
                threshold,
                "short requests share this instance with longer prompts: a long prompt takes at "
                "most half of a step, so a short one is read beside it",
                vllm("0.33.0:vllm/config/scheduler.py#long_prefill_token_threshold"),
            )
        )
    return out
