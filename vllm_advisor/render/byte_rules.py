"""Which bodies go to which instances: a routing policy for routers that count bytes, not tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from vllm_advisor.types.routing import ByteCount, PolicyRoute, RoutingPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Bodies of ``least`` bytes or more, up to the next step.

    The first of ``instances`` takes them; while none of its servers answers, the next one stands
    in. Where it says that a prompt is too long after all (HTTP 400), ``overflow`` may read it, in
    the same order; empty where nobody reads more.
    """

    least: int
    instances: tuple[str, ...]
    overflow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The steps of requests that name one of ``routes`` in the policy's header.

    The first ladder of a policy is also that of requests without the header, or with another value.
    """

    routes: tuple[str, ...]
    steps: tuple[Step, ...]  # by rising least; the first one's is 0

    def step(self, size: int) -> Step:
        """The step for a body of so many bytes."""
        return next(step for step in reversed(self.steps) if step.least <= size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """What a limit in bytes means in tokens, as far as the assumption about bytes holds.

    Prompts of up to ``surely`` tokens stay below it; prompts of more than ``at_most`` are above it.
    In between it depends on the text.
    """

    route: str
    next_route: str
    most_bytes: int
    surely: int
    at_most: int


def ladders(policy: RoutingPolicy) -> tuple[Ladder, ...]:
    """The rules of a policy, those for requests that name no route first.

    The same as :class:`vllm_advisor.routing.Router` decides by the length alone, with bytes for
    tokens; only that the last route of a chain takes whatever is longer: vLLM counts, and refuses.
    """
    unnamed = _steps(policy, [policy.route(name) for name in policy.by_length])
    named: dict[tuple[Step, ...], list[str]] = {unnamed: []}
    for route in policy.routes:
        named.setdefault(_steps(policy, policy.overflow_chain(route)), []).append(route.name)
    return tuple(Ladder(routes=tuple(routes), steps=steps) for steps, routes in named.items())


def thresholds(policy: RoutingPolicy) -> tuple[Threshold, ...]:
    """The limits between the routes among which the length decides."""
    chain = [policy.route(name) for name in policy.by_length]
    return tuple(
        Threshold(
            route=route.name,
            next_route=after.name,
            most_bytes=route.max_prompt_bytes,
            surely=_surely(route.max_prompt_bytes, policy.byte_count),
            at_most=route.max_prompt_tokens,
        )
        for route, after in pairwise(chain)
        if after.max_prompt_bytes > route.max_prompt_bytes
    )


def _surely(most_bytes: int, count: ByteCount) -> int:
    """Tokens that take no more bytes, even where each takes more than assumed."""
    return int(most_bytes / (count.bytes_per_token * (1 + count.margin)))


def _steps(policy: RoutingPolicy, chain: list[PolicyRoute]) -> tuple[Step, ...]:
    """One step between any two limits of the policy, less those that change nothing."""
    limits = sorted({route.max_prompt_bytes for route in policy.routes})
    found: list[tuple[int, tuple[str, ...]]] = []
    for least in (0, *(limit + 1 for limit in limits)):
        instances = _instances(policy, chain, least)
        if not found or found[-1][1] != instances:
            found.append((least, instances))
    return tuple(
        Step(
            least=least,
            instances=instances,
            overflow=next((more for _, more in found[at + 1 :] if more[0] != instances[0]), ()),
        )
        for at, (least, instances) in enumerate(found)
    )


def _instances(policy: RoutingPolicy, chain: list[PolicyRoute], size: int) -> tuple[str, ...]:
    """Who takes a body of so many bytes, and who stands in."""
    taker = next((route for route in chain if route.max_prompt_bytes >= size), chain[-1])
    enough = min(size, taker.max_prompt_bytes)
    able = [r for r in policy.outage_chain(taker) if r.max_prompt_bytes >= enough]
    return tuple(dict.fromkeys(route.instance for route in able))
