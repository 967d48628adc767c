"""Where requests land, many at a time: the router decides, once for all that are alike."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from vllm_advisor.routing.decision import Action
from vllm_advisor.routing.router import Router
from vllm_advisor.types.routing import PolicyRoute, RoutingPolicy
from vllm_advisor.types.workload import Needs

_KEPT = 200_000  # different requests, some 50 MB


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
    """Where the requests of a trace land; what is asked again is answered from memory."""

    def __init__(self, policy: RoutingPolicy) -> None:
        self._router = Router(policy)
        self._known: dict[Asked, Landing] = {}

    def of(self, asked: Asked) -> Landing:
        """Where a request lands while every instance answers.

        Raises:
            InputError: the policy has no such class or route, or the lengths contradict each other.
        """
        found = self._known.get(asked)
        if found is None:
            found = self._decide(asked)
            if len(self._known) < _KEPT:
                self._known[asked] = found
        return found

    def _decide(self, asked: Asked) -> Landing:
        decision = self._router.decide(
            prompt_tokens=asked.prompt_tokens,
            needs=asked.needs,
            request_class=asked.request_class,
            route=asked.route,
            retrieved_tokens=asked.retrieved_tokens,
            history_tokens=asked.history_tokens,
            max_tokens=asked.max_tokens,
        )
        if decision.route is None:
            return Landing(route=None, way=Way.REFUSED, sent_tokens=0)
        route = self._router.policy.route(decision.route)
        if decision.action is Action.BOUND_HISTORY:
            limit = decision.max_prompt_tokens or 0
            return Landing(route=route, way=Way.BOUNDED, sent_tokens=limit)
        passages = decision.retrieved or decision.action is Action.RETRIEVE
        way = Way.PASSAGES if passages else Way.WHOLE
        return Landing(route=route, way=way, sent_tokens=decision.prompt_tokens)
