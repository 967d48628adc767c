"""route() and route_trace(): what a policy does to one request, and to recorded traffic."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from vllm_advisor.api.policies import find_policy
from vllm_advisor.api.traffic_report import TrafficReport
from vllm_advisor.errors import InputError
from vllm_advisor.parse.trace import BLOCK_TOKENS, Trace
from vllm_advisor.parse.trace_columns import Names
from vllm_advisor.routing.decision import Action, RoutingDecision
from vllm_advisor.routing.request import needs_of
from vllm_advisor.routing.router import Router
from vllm_advisor.routing.traffic import route_traffic
from vllm_advisor.routing.what_if import check_thresholds, what_if
from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.types.routing_costs import TokenPrices
from vllm_advisor.types.workload import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReport:
    """The decision for one request."""

    plan: str
    decision: RoutingDecision

    @property
    def taken(self) -> bool:
        """Somebody takes the request."""
        return self.decision.action not in (Action.REFUSE, Action.UNAVAILABLE)

    def to_dict(self) -> dict[str, Any]:
        """JSON types; keys are only ever added (see ``schema_version``)."""
        decided = asdict(self.decision)
        decided["action"] = self.decision.action.value
        decided["stand_ins"] = list(self.decision.stand_ins)
        return {"schema_version": "1", "plan": self.plan, **decided}


def route(
    plan: str | Path,
    *,
    prompt_tokens: int,
    needs: Needs | str | None = None,
    request_class: str | None = None,
    route: str | None = None,
    retrieved_tokens: int | None = None,
    history_tokens: int = 0,
    max_tokens: int | None = None,
    unavailable: Collection[str] = (),
) -> RouteReport:
    """Where one request goes by the policy of a plan.

    Args:
        plan: routing.yaml, plan.yaml, or a folder that has one.
        prompt_tokens: length of the whole prompt.
        needs: what the answer needs.
        request_class: class of the plan.
        route: route asked for by name.
        retrieved_tokens: length of the prompt with passages in place of the document.
        history_tokens: how much of the prompt is earlier conversation.
        max_tokens: longest answer.
        unavailable: instances or routes that do not answer.

    Raises:
        InputError: there is no policy, or it has no such class, route or instance.
    """
    policy = find_policy(plan).policy
    known = dict.fromkeys(name for each in policy.routes for name in (each.name, each.instance))
    for name in unavailable:
        if name not in known:
            raise InputError(
                f"there is no route or instance {name!r}",
                where="unavailable",
                fix=f"use one of: {', '.join(known)}",
            )
    decision = Router(policy).decide(
        prompt_tokens=prompt_tokens,
        needs=needs,
        request_class=request_class,
        route=route,
        retrieved_tokens=retrieved_tokens,
        history_tokens=history_tokens,
        max_tokens=max_tokens,
        unavailable=unavailable,
    )
    return RouteReport(plan=policy.plan, decision=decision)


def route_trace(
    plan: str | Path,
    trace: str | Path,
    *,
    stream: BinaryIO | None = None,
    needs: Needs | str | None = None,
    request_class: str | None = None,
    thresholds: Iterable[int] = (),
    prompt_column: str | None = None,
    output_column: str | None = None,
    hash_block_tokens: int = BLOCK_TOKENS,
    input_usd_per_million_tokens: float | None = None,
    output_usd_per_million_tokens: float | None = None,
    cached_input_usd_per_million_tokens: float | None = None,
) -> TrafficReport:
    """What the policy of a plan does to recorded traffic.

    Args:
        plan: routing.yaml, plan.yaml, or a folder that has one.
        trace: CSV, one JSON object a line, or a JSON array; gzip or not.
        stream: binary stream to read it from, when ``trace`` is only its name.
        needs: what the answers need, for rows that do not say.
        request_class: class of the plan, for rows that do not say.
        thresholds: more lengths to ask about as max_prompt_tokens of the first route.
        prompt_column: column with the length of the prompt, where its name is not known.
        output_column: column with the length of the answer, where its name is not known.
        hash_block_tokens: tokens of the prompt that one of its hash_ids stands for.
        input_usd_per_million_tokens: price instead of the policy's; so are the next two.
        output_usd_per_million_tokens: price of generated tokens.
        cached_input_usd_per_million_tokens: price of prompt tokens in the prefix cache.

    Raises:
        InputError: the trace or a row of it cannot be read, there is no policy, or it has no such
            class, route or threshold.
    """
    planned = find_policy(plan, with_cache=True)
    policy = planned.policy
    prices = _prices(
        policy.prices,
        input=input_usd_per_million_tokens,
        output=output_usd_per_million_tokens,
        cached_input=cached_input_usd_per_million_tokens,
    )
    # Said before a long trace is read.
    _check_class(policy, request_class)
    thresholds = tuple(thresholds)
    check_thresholds(policy, thresholds)
    rows = Trace(
        str(trace),
        stream=stream,
        names=Names(
            prompt_column=prompt_column,
            output_column=output_column,
            classes=tuple(each.name for each in policy.classes),
            routes=tuple(each.name for each in policy.routes),
        ),
        block_tokens=hash_block_tokens,
    )
    traffic = route_traffic(
        policy,
        rows,
        needs=needs_of(needs),
        request_class=request_class,
        block_tokens=hash_block_tokens,
        cache_tokens=planned.cache_tokens,
    )
    return TrafficReport(
        traffic=traffic,
        what_if=what_if(traffic, thresholds),
        prices=prices,
        file=str(trace),
        columns=rows.columns,
        ignored_columns=tuple(rows.ignored),
    )


def _prices(known: TokenPrices, **given: float | None) -> TokenPrices:
    """The prices of the policy; those that are given win.

    Raises:
        InputError: a price is negative or no number.
    """
    for name, price in given.items():
        if price is not None and not 0 <= price < math.inf:
            raise InputError(
                f"{price} is no price",
                where=f"{name}_usd_per_million_tokens",
                fix="give US dollars per million tokens, 0 or more",
            )
    return replace(known, **{name: price for name, price in given.items() if price is not None})


def _check_class(policy: RoutingPolicy, name: str | None) -> None:
    """Even if every row names a class of its own.

    Raises:
        InputError: the policy has no such class.
    """
    known = [each.name for each in policy.classes]
    if name is not None and name not in known:
        raise InputError(
            f"the plan has no class {name!r}",
            where="request_class",
            fix=f"use one of: {', '.join(known) or 'none'}; or leave it out",
        )
