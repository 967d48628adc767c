"""What a policy does to a trace, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vllm_advisor.routing.landing import Way
from vllm_advisor.routing.prefix_reuse import PrefixReuse, Reuse
from vllm_advisor.routing.traffic import Tally, Traffic
from vllm_advisor.routing.what_if import WhatIf
from vllm_advisor.types.routing_costs import TokenPrices
from vllm_advisor.units import round_up

_PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficReport:
    """Traffic over the routes of a policy, and over others if its threshold were moved."""

    traffic: Traffic
    what_if: tuple[WhatIf, ...]
    prices: TokenPrices
    file: str
    columns: Mapping[str, str]
    ignored_columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON types; keys are only ever added (see ``schema_version``).

        Lengths and sums are in tokens. Shares of requests are of all in the trace, shares of
        tokens of all that are sent. ``usd`` has every prompt token at the full price;
        ``usd_with_prefix_cache`` has hits at the price of cached tokens: those of the planned KV
        cache where its size is known, else those of a cache without limit.
        """
        policy, routes, ways = self.traffic.policy, self.traffic.by_route(), self.traffic.by_way()
        total, refused = Tally.summed(ways.values()), ways[Way.REFUSED]
        sent = sum(tally.sent_tokens for tally in routes.values())
        *lengths, longest = self.traffic.prompt_percentiles((*_PERCENTS, 100))
        return {
            "schema_version": "1",
            "plan": policy.plan,
            "model": policy.model,
            "trace": {
                "file": self.file,
                "columns": dict(self.columns),
                "ignored_columns": list(self.ignored_columns),
            },
            "requests": total.requests,
            "prompt_tokens": total.prompt_tokens,
            "output_tokens": total.known_output_tokens,
            "requests_without_output_tokens": total.without_output,
            "prompt_lengths": {
                **{f"p{percent}": n for percent, n in zip(_PERCENTS, lengths, strict=True)},
                "max": longest,
            },
            "routes": [
                {
                    "route": route.name,
                    "instance": route.instance,
                    "max_prompt_tokens": route.max_prompt_tokens,
                    "max_model_len": route.max_model_len,
                    **_sums(routes[route.name], total.requests, sent),
                    "output_tokens": routes[route.name].known_output_tokens,
                    "cut_answers": self.traffic.cut_answers[route.name],
                    "usd": routes[route.name].usd(self.prices),
                    "usd_with_prefix_cache": self._usd_with_cache(route.name, routes[route.name]),
                }
                for route in policy.routes
            ],
            "refused": {
                "requests": refused.requests,
                "requests_share": refused.requests / total.requests,
                "prompt_tokens": refused.prompt_tokens,
                "longest_prompt_tokens": refused.longest_prompt_tokens or None,
            },
            "retrieval": _saved(ways[Way.PASSAGES]),
            "bounded_history": _saved(ways[Way.BOUNDED]),
            "usd": _added(tally.usd(self.prices) for tally in routes.values()),
            "usd_with_prefix_cache": _added(
                self._usd_with_cache(name, tally) for name, tally in routes.items()
            ),
            "prefix_cache": _prefix_cache(self.traffic),
            "what_if": self._what_if(total.requests),
            "notes": list(self._notes(total, ways)),
        }

    def _usd_with_cache(self, route: str, tally: Tally) -> float | None:
        if self.traffic.reuse is None:
            return None
        reuse = self.traffic.reuse.by_route.get(route, Reuse())
        kept = reuse.kept_hit_tokens
        return tally.usd(self.prices, reuse.hit_tokens if kept is None else kept)

    def _what_if(self, requests: int) -> dict[str, Any]:
        policy = self.traffic.policy
        return {
            "route": policy.by_length[0],
            "instance": policy.route(policy.by_length[0]).instance,
            "reason": None
            if self.what_if
            else f"{policy.by_length[0]} alone takes prompts by their length: there is no "
            "threshold to move",
            "thresholds": [
                {
                    "max_prompt_tokens": each.max_prompt_tokens,
                    "because": list(each.because),
                    "max_model_len": each.max_model_len,
                    "instances": [
                        {"instance": name, **_sums(tally, requests, each.sent.sent_tokens)}
                        for name, tally in each.instances.items()
                    ],
                    "refused": each.refused.requests,
                    "usd": each.sent.usd(self.prices),
                }
                for each in self.what_if
            ],
        }

    def _notes(self, total: Tally, ways: Mapping[Way, Tally]) -> Iterator[str]:
        if total.without_output:
            yield (
                f"{total.without_output:,} of {total.requests:,} requests do not say what was "
                "generated: it is missing in output_tokens, cut_answers and usd"
            )
        if self.prices.input is None:
            yield "no price is known: give --input-usd-per-million-tokens"
        elif self.prices.output is None and total.output_tokens:
            yield "no price of generated tokens is known: give --output-usd-per-million-tokens"
        if ways[Way.BOUNDED].requests:
            yield (
                f"{ways[Way.BOUNDED].requests:,} requests with a history that may be shortened "
                "count with max_prompt_tokens of their route"
            )
        if ways[Way.PASSAGES].requests:
            yield "prompts by retrieval count with the question and passages that are sent"
        if self.traffic.reuse is not None:
            yield from _cache_notes(self.traffic.reuse)
        if self.what_if:
            yield from self._threshold_notes()

    def _threshold_notes(self) -> Iterator[str]:
        yield (
            "what-if moves the threshold and nothing else: a longer max_model_len takes KV cache "
            "that fewer requests at once then share, so plan again with it"
        )
        if self.prices.input is not None:
            yield (
                "a token has the same price on every instance: a threshold changes usd only by "
                "what is refused, retrieved or shortened"
            )
        policy = self.traffic.policy
        first, retrieval = policy.route(policy.by_length[0]), policy.retrieval
        route = policy.route(retrieval.route) if retrieval else None
        if retrieval is None or route is None or route.instance != first.instance:
            return
        least = round_up(retrieval.prompt_tokens + route.reserved_output_tokens, 1024)
        if any(each.max_model_len < least for each in self.what_if):
            yield (
                f"{route.name} sends prompts of {retrieval.prompt_tokens:,} tokens to "
                f"{route.instance}, which needs a max_model_len of {least:,} for them"
            )


def _sums(tally: Tally, requests: int, sent_tokens: int) -> dict[str, Any]:
    return {
        "requests": tally.requests,
        "requests_share": tally.requests / requests,
        "prompt_tokens": tally.sent_tokens,
        "prompt_tokens_share": tally.sent_tokens / sent_tokens if sent_tokens else None,
    }


def _saved(tally: Tally) -> dict[str, int]:
    return {
        "requests": tally.requests,
        "tokens_not_sent": tally.prompt_tokens - tally.sent_tokens,
    }


def _added(amounts: Iterator[float | None]) -> float | None:
    known = list(amounts)
    return None if None in known else sum(each for each in known if each is not None)


def _prefix_cache(traffic: Traffic) -> dict[str, Any] | None:
    reuse = traffic.reuse
    if reuse is None:
        return None
    routes = traffic.policy.routes
    instances = dict.fromkeys(route.instance for route in routes)
    return {
        "block_tokens": reuse.block_tokens,
        "in_one_cache": _endless(reuse.in_one),
        "all_instances": _limited(reuse.together(route.name for route in routes)),
        "instances": [
            {
                "instance": instance,
                **_limited(reuse.together(r.name for r in routes if r.instance == instance)),
                "kv_cache_tokens": reuse.cache_tokens.get(instance),
            }
            for instance in instances
        ],
    }


def _endless(reuse: Reuse) -> dict[str, Any]:
    return {
        "requests": reuse.requests,
        "prompt_tokens": reuse.prompt_tokens,
        "hit_tokens": reuse.hit_tokens,
        "hit_rate": reuse.hit_rate,
    }


def _limited(reuse: Reuse) -> dict[str, Any]:
    return {
        **_endless(reuse),
        "planned_hit_tokens": reuse.kept_hit_tokens,
        "planned_hit_rate": reuse.kept_hit_rate,
    }


def _cache_notes(reuse: PrefixReuse) -> Iterator[str]:
    yield (
        "hit rates are of prompts that are sent whole and whose blocks are known, in whole blocks "
        f"of {reuse.block_tokens:,} tokens; without a limit is the most that a cache could reach"
    )
    if reuse.too_few_ids:
        yield (
            f"{reuse.too_few_ids:,} prompts have fewer hash_ids than whole blocks of "
            f"{reuse.block_tokens:,} tokens: the rest of them counts as new; --hash-block-tokens "
            "says how many tokens an id stands for"
        )
    if reuse.cache_tokens:
        yield (
            "the hit rate in the planned KV cache is an upper bound: generated tokens and prompts "
            "without block ids take no room in it, and replicas are taken as one cache though "
            "each has its own"
        )
    else:
        yield "the size of the KV caches is not known: name the plan.yaml or its folder"
