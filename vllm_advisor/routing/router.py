"""The decision for one request: short first, then retrieval, then the long-document instance."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from vllm_advisor.errors import InputError
from vllm_advisor.routing.decision import Action, RoutingDecision
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
        history_tokens: int | None = None,
        max_tokens: int | None = None,
        unavailable: Collection[str] = (),
    ) -> RoutingDecision:
        """Where a request goes.

        Args:
            prompt: the whole prompt, with its document and history; needs ``tokenizer``.
            prompt_tokens: its length instead.
            tokenizer: gives the tokens of a text, or their number.
            needs: ``lookup``, ``whole_document`` or ``recent_only``; that of the class unless
                given. Where neither says, the length decides, and a stated history may lose its
                past.
            request_class: class of the plan, whose rules win over the length.
            route: a route asked for by name, as the header of the policy does it.
            retrieved_tokens: length of the prompt with passages in place of the document, once
                they are there; 0 if nothing was found that answers.
            history_tokens: how much of the prompt is earlier conversation; not known unless given.
            max_tokens: longest answer of this request; what the plan reserves unless given.
            unavailable: instances or routes that do not answer.

        Raises:
            InputError: there is no such class, route or instance, or no length.
        """
        rules = self._rules(request_class)
        request = Request(
            tokens=prompt_length(prompt, prompt_tokens, tokenizer),
            needs=needs_of(needs) or (rules.needs if rules else None),
            retrieved_tokens=token_count("retrieved_tokens", retrieved_tokens),
            history_tokens=token_count("history_tokens", history_tokens),
            max_tokens=token_count("max_tokens", max_tokens, least=1),
            down=self._down(unavailable),
        )
        if (request.history_tokens or 0) > request.tokens:
            raise InputError(
                f"a history of {request.history_tokens:,} tokens is more than the prompt of "
                f"{request.tokens:,} that it is part of",
                where="history_tokens",
                fix="count the whole prompt, with its history",
            )
        if route is not None:
            asked = self._route(route)
            if asked.retrieved and self.policy.retrieval and not request.fits(asked):
                return self._retrieve(request) or self._whole(
                    request, self.policy.overflow_chain(asked)
                )
            return self._whole(
                request, self.policy.overflow_chain(asked), why=f"asked for by name ({route})"
            )
        if rules is not None and rules.pinned:
            why = f"class {rules.name} goes to {rules.route}: {rules.strategy}"
            return self._whole(
                request, self.policy.overflow_chain(self._route(rules.route)), why=why
            )
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
                f"{request.tokens:,} tokens with the history are not within "
                f"{request.limit_of(first)}: summarise old turns, keep the last ones",
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
            return self._send(
                request, route, Action.SEND, why, tokens=request.retrieved_tokens, retrieved=True
            )
        room = min(retrieval.retrieved_tokens, limit - retrieval.question_tokens)
        if room < min(retrieval.chunk_tokens, retrieval.retrieved_tokens):
            return None  # not even one passage
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
        if request.history_tokens is None:
            return request.needs is Needs.RECENT_ONLY
        kept = request.tokens - request.history_tokens
        room = first.prompt_limit(request.max_tokens) - kept
        return request.history_tokens > 0 and room >= self.policy.conversation.summary_tokens

    def _whole(self, request: Request, chain: list[PolicyRoute], why: str = "") -> RoutingDecision:
        """The whole prompt to the first route of the chain that takes it."""
        taker = next((each for each in chain if request.fits(each)), None)
        if taker is None:
            taker = max(chain, key=lambda each: each.max_model_len)
            if not request.fits_beside_its_answer(taker):
                return RoutingDecision(
                    action=Action.REFUSE,
                    prompt_tokens=request.tokens,
                    reason=self._refusal(request, taker),
                )
            reason = (
                f"{request.tokens:,} tokens fit into the {taker.max_model_len:,} of {taker.name} "
                f"with their answer of {request.max_tokens:,}"
            )
        else:
            reason = f"{request.tokens:,} tokens are within {request.limit_of(taker)}"
        if why:
            reason = f"{why}; {reason}"
        if taker is not chain[0]:
            before = chain[chain.index(taker) - 1]
            reason += f", and not within {request.limit_of(before)}"
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
        retrieved: bool = False,
    ) -> RoutingDecision:
        """To the route, or to what stands in while it is down."""
        length = request.tokens if tokens is None else tokens
        least = 0 if action is Action.BOUND_HISTORY else length
        others = [r for r in self.policy.outage_chain(route)[1:] if request.fits(r, least)]
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
            retrieved=retrieved,
            stand_ins=tuple(r.name for r in rest),
            headers={self.policy.header: taker.name},
        )

    def _refusal(self, request: Request, longest: PolicyRoute) -> str:
        text = (
            f"{request.tokens:,} tokens are more than any instance reads: not within "
            f"{request.limit_of(longest)}, of {longest.max_model_len:,} with the answer"
        )
        if request.tokens <= longest.max_prompt_tokens:
            return f"{text}; a shorter answer (max_tokens) would fit"
        if self.policy.retrieval and request.needs is not Needs.LOOKUP:
            text += "; if a few passages answer it, say needs=lookup"
        if request.needs is Needs.WHOLE_DOCUMENT and request.history_tokens:
            text += "; fit_history would shorten the history"
        return text

    def _down(self, names: Collection[str]) -> frozenset[str]:
        known = {name for route in self.policy.routes for name in (route.name, route.instance)}
        wrong = [names] if isinstance(names, str) else sorted(set(names) - known)
        if wrong:
            raise InputError(
                f"{', '.join(map(repr, wrong))} names no instances and no routes",
                where="unavailable",
                fix=f"give a list or a set of: {', '.join(sorted(known))}",
            )
        return frozenset(names)

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
