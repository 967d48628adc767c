"""The decision for one request: short first, then retrieval, then the long-document instance."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from vllm_advisor.errors import InputError
from vllm_advisor.routing.policy_file import read_policy
from vllm_advisor.routing.request import (
    Request,
    Tokenizer,
    needs_of,
    prompt_length,
    token_count,
)
from vllm_advisor.types.routing import ClassRoute, PolicyRoute, RoutingPolicy
from vllm_advisor.types.workload import Needs


class Action(StrEnum):
    """What the application does next."""

    SEND = "send"  # the prompt as it is, to ``model``
    RETRIEVE = "retrieve"  # fetch passages, then decide again with ``retrieved_tokens``
    BOUND_HISTORY = "bound_history"  # fit_history to ``max_prompt_tokens``, then send to ``model``
    REFUSE = "refuse"  # no instance reads so much: tell the client (HTTP 400)
    UNAVAILABLE = "unavailable"  # who could take it does not answer: try later (HTTP 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingDecision:
    """Where a request goes, and why.

    ``prompt_tokens`` is what will be sent: with retrieval the question and its passages.
    ``retrieve_tokens`` is the room for passages where the action is to retrieve. ``stand_ins`` may
    be asked, in this order, if ``route`` does not answer.
    """

    action: Action
    reason: str
    prompt_tokens: int
    route: str | None = None
    instance: str | None = None
    model: str | None = None
    max_prompt_tokens: int | None = None
    retrieve_tokens: int | None = None
    stand_ins: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)


class Router:
    """Decides by a policy; it knows nothing about load and asks nobody.

    Args:
        policy: a ``routing.yaml``, or the policy itself.

    Raises:
        InputError: the file cannot be read, or is no routing.yaml of this version.
    """

    def __init__(self, policy: str | Path | RoutingPolicy) -> None:
        self.policy = policy if isinstance(policy, RoutingPolicy) else read_policy(policy)

    def decide(
        self,
        prompt: str | None = None,
        *,
        prompt_tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
        needs: Needs | str | None = None,
        request_class: str | None = None,
        route: str | None = None,
        retrieved_tokens: int | None = None,
        history_tokens: int = 0,
        max_tokens: int | None = None,
        unavailable: Collection[str] = (),
    ) -> RoutingDecision:
        """Where a request goes.

        Args:
            prompt: the whole prompt, with its document and history; needs ``tokenizer``.
            prompt_tokens: its length instead.
            tokenizer: gives the tokens of a text, or their number.
            needs: ``lookup``, ``whole_document`` or ``recent_only``; that of the class unless
                given. Where neither says, only lengths decide.
            request_class: class of the plan, whose rules win over the length.
            route: a route asked for by name, as the header of the policy does it.
            retrieved_tokens: length of the prompt with passages in place of the document, once
                they are there; 0 if nothing was found that answers.
            history_tokens: how much of the prompt is earlier conversation.
            max_tokens: longest answer of this request; what the plan reserves unless given.
            unavailable: instances or routes that do not answer.

        Raises:
            InputError: there is no such class or route, or no length.
        """
        rules = self._rules(request_class)
        request = Request(
            tokens=prompt_length(prompt, prompt_tokens, tokenizer),
            needs=needs_of(needs) or (rules.needs if rules else None),
            retrieved_tokens=token_count("retrieved_tokens", retrieved_tokens),
            history_tokens=token_count("history_tokens", history_tokens) or 0,
            max_tokens=token_count("max_tokens", max_tokens, least=1),
            down=frozenset(unavailable),
        )
        if route is not None:
            asked = self._route(route)
            if asked.retrieved and self.policy.retrieval and not request.fits(asked):
                return self._retrieve(request) or self._whole(request, self._chain(asked))
            return self._whole(request, self._chain(asked), why=f"asked for by name ({route})")
        if rules is not None and rules.pinned:
            why = f"class {rules.name} goes to {rules.route}: {rules.strategy}"
            return self._whole(request, self._chain(self._route(rules.route)), why=why)
        return self._in_order(request)

    def _in_order(self, request: Request) -> RoutingDecision:
        """Short, retrieval or a shorter history, long."""
        chain = [self._route(name) for name in self.policy.by_length]
        first = chain[0]
        if request.fits(first):
            return self._whole(request, chain)
        if request.needs is Needs.LOOKUP and (found := self._retrieve(request)):
            return found
        if self._may_shorten(request, first):
            return self._send(
                request,
                first,
                Action.BOUND_HISTORY,
                f"{request.tokens:,} tokens with the history are more than the "
                f"{first.prompt_limit(request.max_tokens):,} that {first.name} takes: summarise "
                "old turns, keep the last ones",
            )
        return self._whole(request, chain)

    def _retrieve(self, request: Request) -> RoutingDecision | None:
        """Passages instead of the document; ``None`` if that does not answer it."""
        retrieval = self.policy.retrieval
        if retrieval is None or request.retrieved_tokens == 0:
            return None
        route = self._route(retrieval.route)
        limit = route.prompt_limit(request.max_tokens)
        if request.retrieved_tokens is not None:
            if request.retrieved_tokens > limit:
                return None
            why = f"passages answer it: {request.retrieved_tokens:,} tokens instead of the whole"
            return self._send(request, route, Action.SEND, why, tokens=request.retrieved_tokens)
        room = min(retrieval.retrieved_tokens, limit - retrieval.question_tokens)
        if room <= 0:
            return None
        return self._send(
            request,
            route,
            Action.RETRIEVE,
            f"passages may answer it: retrieve {room:,} tokens of them instead of sending "
            f"{request.tokens:,}",
            tokens=retrieval.question_tokens + room,
            room=room,
        )

    def _may_shorten(self, request: Request, first: PolicyRoute) -> bool:
        """The history may lose its past, and without it the prompt is short enough."""
        if self.policy.conversation is None or request.needs in (
            Needs.WHOLE_DOCUMENT,
            Needs.LOOKUP,
        ):
            return False
        if request.needs is None and not request.history_tokens:
            return False
        kept = request.tokens - request.history_tokens if request.history_tokens else 0
        return request.fits(first, kept)

    def _whole(self, request: Request, chain: list[PolicyRoute], why: str = "") -> RoutingDecision:
        """The whole prompt to the first route of the chain that takes it."""
        taker = next((each for each in chain if request.fits(each)), None)
        if taker is None:
            longest = max(chain, key=lambda each: each.prompt_limit(request.max_tokens))
            return RoutingDecision(
                action=Action.REFUSE,
                prompt_tokens=request.tokens,
                reason=self._refusal(request, longest),
            )
        limit = taker.prompt_limit(request.max_tokens)
        reason = f"{request.tokens:,} tokens are within the {limit:,} that {taker.name} takes"
        if why:
            reason = f"{why}; {reason}"
        if taker is not chain[0]:
            before = chain[chain.index(taker) - 1]
            reason += (
                f", and above the {before.prompt_limit(request.max_tokens):,} of {before.name}"
            )
        return self._send(request, taker, Action.SEND, reason)

    def _send(
        self,
        request: Request,
        route: PolicyRoute,
        action: Action,
        reason: str,
        *,
        tokens: int | None = None,
        room: int | None = None,
    ) -> RoutingDecision:
        """To the route, or to what stands in while it is down."""
        length = request.tokens if tokens is None else tokens
        least = 0 if action is Action.BOUND_HISTORY else length
        others = [r for r in self._stand_ins(route) if request.fits(r, least)]
        open_ = [r for r in (route, *others) if not request.is_down(r)]
        if not open_:
            who = ", ".join(dict.fromkeys(r.instance for r in (route, *others)))
            return RoutingDecision(
                action=Action.UNAVAILABLE,
                prompt_tokens=length,
                reason=f"{reason}; but nobody answers: {who}",
            )
        taker, *rest = open_
        if taker is not route:
            reason += f"; {route.instance} does not answer, {taker.name} stands in"
            if action is Action.BOUND_HISTORY and request.fits(taker):
                action = Action.SEND
        return RoutingDecision(
            action=action,
            reason=reason,
            prompt_tokens=length,
            route=taker.name,
            instance=taker.instance,
            model=taker.name,
            max_prompt_tokens=taker.prompt_limit(request.max_tokens),
            retrieve_tokens=room,
            stand_ins=tuple(r.name for r in rest),
            headers={self.policy.header: taker.name},
        )

    def _refusal(self, request: Request, longest: PolicyRoute) -> str:
        text = (
            f"{request.tokens:,} tokens are more than any instance reads: {longest.name} takes "
            f"{longest.prompt_limit(request.max_tokens):,} ({longest.max_model_len:,} with the "
            "answer)"
        )
        if self.policy.retrieval and request.needs is not Needs.LOOKUP:
            text += "; if a few passages answer it, say needs=lookup"
        if request.needs is Needs.WHOLE_DOCUMENT and request.history_tokens:
            text += "; fit_history would shorten the history"
        return text

    def _chain(self, start: PolicyRoute) -> list[PolicyRoute]:
        return [start, *self._follow(start, "on_overflow")]

    def _stand_ins(self, start: PolicyRoute) -> Iterator[PolicyRoute]:
        return self._follow(start, "on_outage")

    def _follow(self, start: PolicyRoute, link: str) -> Iterator[PolicyRoute]:
        seen = {start.name}
        name = getattr(start, link)
        while name is not None and name not in seen:
            seen.add(name)
            route = self._route(name)
            yield route
            name = getattr(route, link)

    def _route(self, name: str) -> PolicyRoute:
        try:
            return self.policy.route(name)
        except KeyError:
            known = ", ".join(route.name for route in self.policy.routes)
            raise InputError(
                f"there is no route {name!r}", where="route", fix=f"use one of: {known}"
            ) from None

    def _rules(self, name: str | None) -> ClassRoute | None:
        if name is None:
            return None
        try:
            return self.policy.request_class(name)
        except KeyError:
            known = ", ".join(each.name for each in self.policy.classes)
            raise InputError(
                f"the plan has no class {name!r}",
                where="request_class",
                fix=f"use one of: {known}; or leave it out",
            ) from None
