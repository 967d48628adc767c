"""What prefix caching is worth: whole blocks only, and blocks can be large."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.reasons import Scope
from vllm_advisor.decide.search import Search
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.prefix_cache import prefix_block_tokens
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.model import KVCacheSpecKind
from vllm_advisor.types.source import Assumption, Source, SourceKind
from vllm_advisor.units import format_tokens

_STATED = "On by default; stated so that it stays on"


def prefix_caching_flags(scope: Scope, search: Search, chosen: Candidate) -> list[Decision]:
    """enable_prefix_caching; none where nothing is generated: there is no prefix to go on from."""
    if search.setting.pooling:
        return []
    return [
        scope.decide(
            "enable_prefix_caching",
            True,  # noqa: FBT003
            f"{_reason(search, chosen)}{_of_states(search, chosen)}. {_STATED}",
            Source(
                SourceKind.VLLM_DEFAULT, f"{search.setting.engine.version}:enable_prefix_caching"
            ),
        )
    ]


def prefix_notes(search: Search, chosen: Candidate) -> tuple[Assumption, ...]:
    """What the plan takes for true about shared prefixes of models with recurrent layers."""
    if not _recurrent(search):
        return ()
    block = prefix_tokens(search, chosen)
    return tuple(
        Assumption(
            id=f"{d.request.name}.shared-prefix",
            text=f"class {d.request.name}: {_found(d, block)}; "
            f"{search.setting.model.architecture} keeps states at the ends of blocks of "
            f"{format_tokens(block)} tokens, and no shorter prefix is found again",
        )
        for d in search.demands
        if d.shared_prefix_tokens
    )


def _found(demand: Demand, block: int) -> str:
    shared = demand.shared_prefix_tokens
    if shared < block:
        return (
            f"its shared prefix of {format_tokens(shared)} tokens is never a hit, and every "
            "request is counted with all of its prompt"
        )
    return (
        f"{format_tokens(shared // block * block)} of the {format_tokens(shared)} tokens of its "
        "shared prefix are taken to be held once"
    )


def _reason(search: Search, chosen: Candidate) -> str:
    again = [d for d in search.demands if d.request.requests_per_document > 1]
    if again:
        d = again[0]
        return (
            f"class {d.request.name} sends the same document or conversation "
            f"{d.request.requests_per_document:g} times in a row: its KV cache is reused"
        )
    shared = [d for d in search.demands if d.shared_prefix_tokens]
    if shared:
        d, block = shared[0], prefix_tokens(search, chosen)
        if d.shared_prefix_tokens < block:
            return f"class {d.request.name}: {_found(d, block)}"
        engines = " by each engine" if chosen.settings.data_parallel_size > 1 else ""
        return (
            f"class {d.request.name} shares a prefix of {format_tokens(d.shared_prefix_tokens)} "
            f"tokens, held once{engines}"
        )
    return (
        "nothing is known to repeat" if _recurrent(search) else "costs nothing when nothing repeats"
    )


def _of_states(search: Search, chosen: Candidate) -> str:
    """What it costs and needs where layers keep states."""
    if not _recurrent(search):
        return ""
    assert chosen.figures is not None  # noqa: S101 - a chosen candidate is sized
    states = max(
        g.blocks_per_request
        for g in chosen.figures.capacity.groups
        if g.kind == KVCacheSpecKind.MAMBA.value
    )
    return (
        f"; with recurrent layers (mamba_cache_mode align) hits end at blocks of "
        f"{format_tokens(prefix_tokens(search, chosen))} tokens, and a request holds {states} "
        "state blocks instead of 1 in each group"
    )


def prefix_tokens(search: Search, chosen: Candidate) -> int:
    """Tokens of a prefix that the cache finds are a multiple of this."""
    return prefix_block_tokens(cache_layout(search.setting.model, chosen.settings))


def _recurrent(search: Search) -> bool:
    return any(s.state is not None for s in search.setting.model.cache_specs)
