"""What moving the threshold of the short route would do to recorded traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vllm_advisor.errors import InputError
from vllm_advisor.routing.landing import Landings
from vllm_advisor.routing.traffic import Tally, Traffic
from vllm_advisor.types.routing import PolicyRoute, RoutingPolicy
from vllm_advisor.units import round_up

PERCENTS = (50, 75, 90, 95, 99)
_LENGTH_STEP = 1024  # plans give max_model_len in such steps


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Traffic if the first route took prompts of up to ``max_prompt_tokens``.

    ``because`` says why this length is asked about. ``max_model_len`` is what its instance would
    need: the prompt and the tokens reserved for the answer, rounded up to 1,024.
    """

    max_prompt_tokens: int
    because: tuple[str, ...]
    max_model_len: int
    instances: Mapping[str, Tally]
    refused: Tally

    @property
    def sent(self) -> Tally:
        """All that is sent, over the instances."""
        return Tally.summed(self.instances.values())


def what_if(traffic: Traffic, thresholds: Iterable[int] = ()) -> tuple[WhatIf, ...]:
    """The present threshold, the lengths below which shares of the prompts lie, and those given.

    Only the threshold moves, and max_model_len with it where it has to: how much KV cache is then
    left for how many requests is for a new plan to say. None is above the limit of the next route
    in ``by_length``. Empty if there is no next route.

    Raises:
        InputError: a given threshold is not within 1 and the limit of the next route.
    """
    policy, thresholds = traffic.policy, tuple(thresholds)
    check_thresholds(policy, thresholds)
    if len(policy.by_length) < 2:
        return ()
    first, following = (policy.route(name) for name in policy.by_length[:2])
    most = following.max_prompt_tokens
    asked: dict[int, list[str]] = {first.max_prompt_tokens: ["present"]}
    for percent, length in zip(PERCENTS, traffic.prompt_percentiles(PERCENTS), strict=True):
        name = f"p{percent}" if length <= most else f"below p{percent}"
        asked.setdefault(max(1, min(length, most)), []).append(name)
    for threshold in thresholds:
        asked.setdefault(threshold, []).append("given")
    return tuple(
        _moved(traffic, threshold, tuple(dict.fromkeys(asked[threshold])))
        for threshold in sorted(asked)
    )


def check_thresholds(policy: RoutingPolicy, thresholds: Iterable[int]) -> None:
    """Lengths that can be asked about as max_prompt_tokens of the first route.

    Raises:
        InputError: one is not within 1 and the limit of the next route, or there is no next route.
    """
    for threshold in thresholds:
        if len(policy.by_length) < 2:
            raise InputError(
                f"there is no threshold to move: {policy.by_length[0]} alone takes prompts by "
                "their length",
                where="--threshold",
                fix="leave it out",
            )
        first, following = (policy.route(name) for name in policy.by_length[:2])
        if not 1 <= threshold <= following.max_prompt_tokens:
            raise InputError(
                f"{threshold:,} tokens are no threshold for {first.name}: the next route, "
                f"{following.name}, takes {following.max_prompt_tokens:,}",
                where="--threshold",
                fix=f"give 1 to {following.max_prompt_tokens:,} tokens",
            )


def _moved(traffic: Traffic, threshold: int, because: tuple[str, ...]) -> WhatIf:
    first = traffic.policy.route(traffic.policy.by_length[0])
    landings = Landings(with_threshold(traffic.policy, threshold))
    instances = {route.instance: Tally() for route in traffic.policy.routes}
    refused = Tally()
    for asked, group, landing in traffic.landed(landings):
        tally = refused if landing.route is None else instances[landing.route.instance]
        tally.add(asked, group, landing)
    return WhatIf(
        max_prompt_tokens=threshold,
        because=because,
        max_model_len=_needed_length(first, threshold),
        instances=instances,
        refused=refused,
    )


def with_threshold(policy: RoutingPolicy, threshold: int) -> RoutingPolicy:
    """The policy with another ``max_prompt_tokens`` of its first route.

    Its max_model_len grows where prompt and answer need it, and never shrinks.
    """
    first = policy.route(policy.by_length[0])
    length = max(first.max_model_len, _needed_length(first, threshold))
    moved = replace(first, max_prompt_tokens=threshold, max_model_len=length)
    return replace(
        policy, routes=tuple(moved if route is first else route for route in policy.routes)
    )


def _needed_length(route: PolicyRoute, threshold: int) -> int:
    return round_up(threshold + route.reserved_output_tokens, _LENGTH_STEP)
