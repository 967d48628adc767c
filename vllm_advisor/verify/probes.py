"""Which probes a routing policy asks for, and what each should come to. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from vllm_advisor.routing import Action, Router
from vllm_advisor.types.routing import PolicyRoute, RoutingPolicy

TAGS_HEADER = "x-litellm-tags"
REFUSED = "refused"  # what an over-long prompt should come to, in the place of an instance
SHORT_TOKENS = 16
_LINE = "The quick brown fox jumps over the lazy dog while the clerk counts pages.\n"
_ABOVE = 1.5  # times the limit before, to be clearly above it
_BELOW = 0.9  # times a limit, to be clearly below it


class Kind(StrEnum):
    """What decides where a probe goes."""

    LENGTH = "length"
    HEADER = "header"
    MODEL = "model"
    OVERLONG = "overlong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One request to send: ``tokens`` in its prompt, about; ``route`` it asks for by name."""

    kind: Kind
    model: str
    tokens: int
    route: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def asked(self) -> dict[str, str | int | None]:
        """JSON types, for the report."""
        header = self.route if self.headers else None
        return {"model": self.model, "header": header, "tokens": self.tokens}


def probes(policy: RoutingPolicy, kinds: Collection[Kind], *, cap: int) -> tuple[Probe, ...]:
    """The probes of these kinds, short ones first.

    Args:
        policy: the plan's.
        kinds: which to make.
        cap: longest prompt by length in tokens, unless the limit before it is longer.
    """
    made: list[Probe] = []
    names = [route.name for route in policy.routes]
    if Kind.HEADER in kinds:
        made += [
            Probe(
                kind=Kind.HEADER,
                model=policy.model,
                tokens=SHORT_TOKENS,
                route=name,
                headers={policy.header.lower(): name, TAGS_HEADER: name},
            )
            for name in names
        ]
    if Kind.MODEL in kinds:
        made += [
            Probe(kind=Kind.MODEL, model=name, tokens=SHORT_TOKENS, route=name) for name in names
        ]
    if Kind.LENGTH in kinds:
        made += [
            Probe(kind=Kind.LENGTH, model=policy.model, tokens=tokens)
            for tokens in length_targets(policy, cap=cap)
        ]
    if Kind.OVERLONG in kinds:
        longest = max(route.max_model_len for route in policy.routes)
        made.append(Probe(kind=Kind.OVERLONG, model=policy.model, tokens=longest * 5 // 4))
    return tuple(made)


def length_targets(policy: RoutingPolicy, *, cap: int) -> tuple[int, ...]:
    """Tokens well within the range of each route that length decides on.

    The middle of the range, or less where that is more than ``cap``: but then still half as much
    again as the limit before. Where routers that count bytes may send the middle on already, it is
    less as well. Routes whose range is empty have none.
    """
    found = []
    before = 0
    for name in policy.by_length:
        route = policy.route(name)
        limit = route.max_prompt_tokens
        target = min((before + limit) // 2, max(cap, int(before * _ABOVE)))
        sure = int(_BELOW * sure_tokens(policy, route))
        if name != policy.by_length[-1] and sure > before / _BELOW:
            target = min(target, sure)
        if before < target <= limit:
            found.append(target)
        before = limit
    return tuple(found)


def expected_instance(policy: RoutingPolicy, probe: Probe, tokens: int) -> str:
    """The instance the policy sends a prompt of so many tokens to, or :data:`REFUSED`."""
    decision = Router(policy).decide(prompt_tokens=tokens, route=probe.route)
    if decision.action is Action.REFUSE or decision.instance is None:
        return REFUSED
    return decision.instance


def sure_tokens(policy: RoutingPolicy, route: PolicyRoute) -> float:
    """So many tokens routers that count bytes keep on this route, whatever the text is.

    What ``max_prompt_bytes`` hold at the most bytes per token that the policy reckons with.
    """
    count = policy.byte_count
    return route.max_prompt_bytes / (count.bytes_per_token * (1 + count.margin))


def in_margin(policy: RoutingPolicy, tokens: int) -> str | None:
    """The route near whose limit a prompt is, if routers that count bytes may send it on already.

    That is above :func:`sure_tokens`, up to ``max_prompt_tokens``.
    """
    for name in policy.by_length[:-1]:
        route = policy.route(name)
        if sure_tokens(policy, route) < tokens <= route.max_prompt_tokens:
            return name
    return None


def filler(label: str, tokens: int, bytes_per_token: float) -> str:
    """A prompt of about so many tokens that starts with ``label``, so that no two are alike."""
    size = max(1, int(tokens * bytes_per_token))
    start = f"{label}\n"
    return (start + _LINE * (size // len(_LINE) + 1))[: max(size, len(start))]
