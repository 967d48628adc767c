"""Where requests land, many at a time: the router decides, once for all that no limit separates."""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum
from typing import NamedTuple

from vllm_advisor.routing.router import Action, Router
from vllm_advisor.types.routing import PolicyRoute, RoutingPolicy
from vllm_advisor.types.workload import Needs


class Asked(NamedTuple):
    """What a router is told of a request: requests that are equal in it land together."""

    prompt_tokens: int
    needs: Needs | None = None
    request_class: str | None = None
    route: str | None = None
    retrieved_tokens: int | None = None
    history_tokens: int | None = None
    max_tokens: int | None = None


class Way(StrEnum):
    """What becomes of a prompt."""

    WHOLE = "whole"  # sent as it is
    PASSAGES = "passages"  # a question and passages are sent instead
    BOUNDED = "bounded"  # its history is shortened to what the route takes
    REFUSED = "refused"  # no route reads it


class Landing(NamedTuple):
    """The route, ``None`` where the request is refused, and how many tokens are sent to it."""

    route: PolicyRoute | None
    way: Way
    sent_tokens: int


class Landings:
    """Where the requests of a trace land by a policy.

    :meth:`Router.decide` compares lengths with the limits of routes and with nothing else. Two
    requests whose lengths lie between the same limits therefore go the same way, and the router is
    asked about the first of them only.
    """

    def __init__(self, policy: RoutingPolicy) -> None:
        self._router = Router(policy)
        self._first = policy.route(policy.by_length[0])
        self._limits: dict[int | None, list[int]] = {}
        self._known: dict[tuple[object, ...], tuple[PolicyRoute | None, Way, int | None]] = {}

    def of(self, asked: Asked) -> Landing:
        """Where a request lands while every instance answers.

        Raises:
            InputError: the policy has no such class or route.
        """
        kind = self._kind(asked)
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = self._decide(asked)
        route, way, fixed = found
        if fixed is not None:
            return Landing(route=route, way=way, sent_tokens=fixed)
        whole = asked.retrieved_tokens is None or way is not Way.PASSAGES
        sent = asked.prompt_tokens if whole else asked.retrieved_tokens
        return Landing(route=route, way=way, sent_tokens=sent or 0)

    def _kind(self, asked: Asked) -> tuple[object, ...]:
        """Equal for requests that no limit separates."""
        tokens, needs, name, route, retrieved, history, max_tokens = asked
        limits = self._limits.get(max_tokens)
        if limits is None:
            routes = self._router.policy.routes
            limits = sorted({each.prompt_limit(max_tokens) for each in routes})
            self._limits[max_tokens] = limits
        return (
            bisect_left(limits, tokens),
            needs,
            name,
            route,
            max_tokens,
            # 0 passages say that nothing was found; as many as the prompt are no saving.
            retrieved and (bisect_left(limits, retrieved), retrieved == tokens),
            tokens - history <= self._first.prompt_limit(max_tokens) if history else None,
        )

    def _decide(self, asked: Asked) -> tuple[PolicyRoute | None, Way, int | None]:
        """Route, way, and what is sent where it is the same for all requests of the kind."""
        decision = self._router.decide(
            prompt_tokens=asked.prompt_tokens,
            needs=asked.needs,
            request_class=asked.request_class,
            route=asked.route,
            retrieved_tokens=asked.retrieved_tokens,
            history_tokens=asked.history_tokens or 0,
            max_tokens=asked.max_tokens,
        )
        if decision.route is None:
            return None, Way.REFUSED, 0
        route = self._router.policy.route(decision.route)
        if decision.action is Action.RETRIEVE:
            return route, Way.PASSAGES, decision.prompt_tokens
        if decision.action is Action.BOUND_HISTORY:
            return route, Way.BOUNDED, decision.max_prompt_tokens
        sent_whole = decision.prompt_tokens == asked.prompt_tokens
        return route, Way.WHOLE if sent_whole else Way.PASSAGES, None
