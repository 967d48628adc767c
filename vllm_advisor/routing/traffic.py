"""What a policy does to recorded traffic: requests, tokens and cost of each route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vllm_advisor.routing.landing import Asked, Landing, Landings, Way
from vllm_advisor.routing.prefix_reuse import PrefixReuse
from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.types.routing_costs import TokenPrices
from vllm_advisor.types.trace import TracedRequest
from vllm_advisor.types.workload import Needs


@dataclass(slots=True, kw_only=True)
class Group:
    """All requests of a trace that ask for the same; they land together."""

    landing: Landing
    requests: int = 0
    output_tokens: int = 0
    without_output: int = 0


@dataclass(slots=True, kw_only=True)
class Tally:
    """Sums over groups; ``prompt_tokens`` are those that were asked, ``sent_tokens`` those sent."""

    requests: int = 0
    prompt_tokens: int = 0
    sent_tokens: int = 0
    output_tokens: int = 0
    without_output: int = 0
    longest_prompt_tokens: int = 0

    def add(self, asked: Asked, group: Group, landing: Landing) -> None:
        """Count a group that lands so."""
        self.requests += group.requests
        self.prompt_tokens += group.requests * asked.prompt_tokens
        self.sent_tokens += group.requests * landing.sent_tokens
        self.output_tokens += group.output_tokens
        self.without_output += group.without_output
        self.longest_prompt_tokens = max(self.longest_prompt_tokens, asked.prompt_tokens)

    @classmethod
    def summed(cls, tallies: Iterable[Tally]) -> Tally:
        """Several of them as one."""
        made = cls()
        for each in tallies:
            made.requests += each.requests
            made.prompt_tokens += each.prompt_tokens
            made.sent_tokens += each.sent_tokens
            made.output_tokens += each.output_tokens
            made.without_output += each.without_output
            made.longest_prompt_tokens = max(made.longest_prompt_tokens, each.longest_prompt_tokens)
        return made

    @property
    def known_output_tokens(self) -> int | None:
        """Generated tokens; ``None`` if no request says how many they were."""
        if self.requests and self.without_output == self.requests:
            return None
        return self.output_tokens

    def usd(self, prices: TokenPrices, cached_tokens: int = 0) -> float | None:
        """Price of what is sent and generated; ``None`` where a price is missing."""
        if prices.output is None and self.output_tokens:
            return None
        return prices.usd(self.sent_tokens, cached_tokens, self.output_tokens)


@dataclass(slots=True, kw_only=True)
class Traffic:
    """A trace as a policy routes it.

    ``cut_answers`` counts, by the name of the route, requests whose prompt and answer are longer
    than its max_model_len. ``reuse`` is there only if the trace has block ids.
    """

    policy: RoutingPolicy
    groups: dict[Asked, Group] = field(default_factory=dict)
    cut_answers: Counter[str] = field(default_factory=Counter)
    reuse: PrefixReuse | None = None

    def landed(self, landings: Landings | None = None) -> Iterator[tuple[Asked, Group, Landing]]:
        """Every group with where it lands, by another policy if ``landings`` are given."""
        for asked, group in self.groups.items():
            yield asked, group, group.landing if landings is None else landings.of(asked)

    def by_route(self) -> dict[str, Tally]:
        """What every route of the policy gets, by its name."""
        made = {route.name: Tally() for route in self.policy.routes}
        for asked, group, landing in self.landed():
            if landing.route is not None:
                made[landing.route.name].add(asked, group, landing)
        return made

    def by_way(self) -> dict[Way, Tally]:
        """What becomes of the prompts."""
        made = {way: Tally() for way in Way}
        for asked, group, landing in self.landed():
            made[landing.way].add(asked, group, landing)
        return made

    def prompt_percentiles(self, percents: Iterable[int]) -> list[int]:
        """Lengths of prompts by nearest rank, for ascending percents from 1 to 100.

        The value is the smallest length such that at least this share of the requests has a prompt
        of that length or a shorter one.
        """
        lengths: Counter[int] = Counter()
        for asked, group in self.groups.items():
            lengths[asked.prompt_tokens] += group.requests
        ranks = [-(-lengths.total() * percent // 100) for percent in percents]
        found: list[int] = []
        reached = 0
        for length in sorted(lengths):
            reached += lengths[length]
            while len(found) < len(ranks) and ranks[len(found)] <= reached:
                found.append(length)
        return found


def route_traffic(
    policy: RoutingPolicy,
    requests: Iterable[TracedRequest],
    *,
    needs: Needs | None = None,
    request_class: str | None = None,
    block_tokens: int = 512,
    cache_tokens: Mapping[str, int] | None = None,
) -> Traffic:
    """Route every request of a trace while all instances answer.

    What was generated is not known to a router and decides nothing. Memory grows with the number
    of different requests and with the block ids.

    Args:
        policy: the rules.
        requests: the trace, in the order in which it arrived.
        needs: what the answers need, for requests that do not say.
        request_class: class of the plan, for requests that do not say.
        block_tokens: tokens that each block id stands for.
        cache_tokens: KV cache of the instances whose size is known.

    Raises:
        InputError: the policy has no such class or route.
    """
    landings = Landings(policy)
    groups: dict[Asked, Group] = {}
    cut_answers: Counter[str] = Counter()
    reuse: PrefixReuse | None = None
    for request in requests:
        asked = Asked(
            request.prompt_tokens,
            request.needs or needs,
            request.request_class or request_class,
            request.route,
            request.retrieved_tokens,
            request.history_tokens,
            request.max_tokens,
        )
        group = groups.get(asked)
        if group is None:
            group = groups[asked] = Group(landing=landings.of(asked))
        group.requests += 1
        landing = group.landing
        if request.output_tokens is None:
            group.without_output += 1
        else:
            group.output_tokens += request.output_tokens
            if landing.route is not None:
                length = landing.sent_tokens + request.output_tokens
                if length > landing.route.max_model_len:
                    cut_answers[landing.route.name] += 1
        if request.hash_ids is not None:
            reuse = reuse or PrefixReuse(block_tokens, cache_tokens or {})
            reuse.offer(request.hash_ids, request.prompt_tokens)
            if landing.way is Way.WHOLE and landing.route is not None:
                reuse.send(
                    request.hash_ids,
                    request.prompt_tokens,
                    route=landing.route.name,
                    instance=landing.route.instance,
                )
    return Traffic(policy=policy, groups=groups, cut_answers=cut_answers, reuse=reuse)
