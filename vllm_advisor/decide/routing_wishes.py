"""What a policy says of bytes and of conversations: the user's wishes, or what is assumed."""

from __future__ import annotations

from vllm_advisor.decide.reasons import Scope, formula, user
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.routing import ByteCount, ConversationPolicy, RoutingPolicy
from vllm_advisor.types.source import Assumption, Source, SourceKind
from vllm_advisor.types.workload import Feature, Workload
from vllm_advisor.units import MIB, format_tokens, round_up

_BYTES_PER_TOKEN = 4.0  # what llm-d's router takes: pkg/epp, estimate of context-length-aware
_MARGIN = 0.25
_KEEP_TURNS = 4
_SUMMARY_SHARE = 8
_ESCAPED = 16  # bytes of the body a token may take: characters as \uXXXX
_IMAGE_BYTES = 8 * MIB


def byte_count(workload: Workload, longest: int) -> ByteCount:
    """How bytes tell tokens, and the body of a prompt of ``longest`` tokens at most."""
    wishes = workload.routing
    body = longest * _ESCAPED
    if Feature.VISION in workload.features:
        body += (workload.images_per_prompt or 1) * _IMAGE_BYTES
    return ByteCount(
        bytes_per_token=wishes.bytes_per_token or _BYTES_PER_TOKEN,
        margin=_MARGIN if wishes.bytes_margin is None else wishes.bytes_margin,
        body_limit_bytes=round_up(body, MIB),
    )


def conversation(workload: Workload, limit: int, count: ByteCount) -> ConversationPolicy:
    """When a history is shortened: at ``limit`` tokens, which no prompt may exceed, or earlier."""
    wishes = workload.routing
    above = min(wishes.summarise_above_tokens or limit, limit)
    return ConversationPolicy(
        summarise_above_tokens=above,
        keep_last_turns=wishes.keep_last_turns or _KEEP_TURNS,
        summary_tokens=min(wishes.summary_tokens or max(1, above // _SUMMARY_SHARE), above),
        bytes_per_token=count.bytes_per_token * (1 - count.margin),
    )


def wish_decisions(scope: Scope, workload: Workload, policy: RoutingPolicy) -> tuple[Decision, ...]:
    """The decisions behind both."""
    talk = policy.conversation
    if talk is None:
        return ()
    own = workload.routing.summarise_above_tokens
    stated = own == talk.summarise_above_tokens
    return (
        scope.decide(
            "conversation",
            talk.summarise_above_tokens,
            f"a longer history becomes a summary of at most "
            f"{format_tokens(talk.summary_tokens)} tokens and the last {talk.keep_last_turns} "
            f"turns: above it {policy.by_length[0]} takes no prompt"
            + ("" if own is None or stated else f" (asked for: {format_tokens(own)})"),
            user(workload.origins.get("routing.summarise_above_tokens", "routing"))
            if stated
            else formula("routing-threshold"),
            flag=False,
        ),
        scope.decide(
            "bytes-per-token",
            policy.byte_count.bytes_per_token,
            "for routers that see bytes and no tokens: thresholds are this times "
            f"{1 - policy.byte_count.margin:g}, so that a body of as few bytes per token is not "
            "sent where it does not fit",
            user(workload.origins.get("routing.bytes_per_token", "routing"))
            if workload.routing.bytes_per_token
            else Source(SourceKind.ASSUMED, "bytes-per-token"),
            flag=False,
        ),
    )


def byte_assumptions(workload: Workload, policy: RoutingPolicy) -> tuple[Assumption, ...]:
    """What is assumed of bytes, where they decide between instances."""
    if len(policy.by_length) == 1 or workload.routing.bytes_per_token is not None:
        return ()
    count = policy.byte_count
    return (
        Assumption(
            id="routing.bytes-per-token",
            text=f"a token of a prompt is taken to be {count.bytes_per_token:g} bytes of the body, "
            f"{count.margin:.0%} more or less, where a router counts bytes (Envoy, nginx); "
            "routing.bytes_per_token says what yours are",
        ),
    )
