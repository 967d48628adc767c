"""Rules for routers that count bytes: by hand, and against the router that applications use."""

import dataclasses
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import CHAT, CONTRACTS, LONG, RAG

from vllm_advisor.errors import OutputError
from vllm_advisor.render.byte_rules import Ladder, Step, ladders, thresholds
from vllm_advisor.render.jinja import nginx_word
from vllm_advisor.render.nginx import more_than
from vllm_advisor.routing.router import Action, Router
from vllm_advisor.types.routing import Bound, ByteCount, PolicyRoute, RoutingPolicy


def test_contracts_by_hand():
    """chat takes 18,504 bytes; whoever asks for long-docs by name is there already."""
    assert ladders(CONTRACTS) == (
        Ladder(
            routes=("chat", "rag"),
            steps=(
                Step(least=0, instances=("chat", "long-docs"), overflow=("long-docs",)),
                Step(least=18_505, instances=("long-docs",)),
            ),
        ),
        Ladder(routes=("long-docs",), steps=(Step(least=0, instances=("long-docs",)),)),
    )


def test_what_a_threshold_means_by_hand():
    """18,504 / (4 x 1.25) = 3,700.8: so many tokens fit even at 5 bytes each.

    At 4 x 0.75 = 3 bytes each, 6,169 tokens take 18,507 bytes, which is above it.
    """
    (found,) = thresholds(CONTRACTS)
    assert (found.route, found.next_route) == ("chat", "long-docs")
    assert (found.most_bytes, found.surely, found.at_most) == (18_504, 3700, 6168)
    assert found.surely * 5 <= found.most_bytes < (found.at_most + 1) * 3


def test_a_route_that_nobody_follows_takes_everything():
    alone = dataclasses.replace(CONTRACTS, routes=(CHAT, RAG, LONG), by_length=("chat",))
    first, *_ = ladders(alone)
    assert first == Ladder(routes=(), steps=(Step(least=0, instances=("chat", "long-docs")),)), (
        "the long one stands in, but a refusal is the client's"
    )


def test_a_stand_in_that_is_too_small_does_not_stand_in():
    """chat stands in for long-docs, but only for what it can read."""
    long = dataclasses.replace(LONG, on_outage="chat")
    policy = dataclasses.replace(CONTRACTS, routes=(CHAT, RAG, long))
    by_name = ladders(policy)[1]
    assert by_name.routes == ("long-docs",)
    assert by_name.steps == (
        Step(least=0, instances=("long-docs", "chat")),
        Step(least=18_505, instances=("long-docs",)),
    )


def routes_of(limits, instances, overflows, outages):
    names = [f"r{n}" for n in range(len(limits))]

    def link(choice):
        return names[choice] if choice < len(names) else None

    return tuple(
        PolicyRoute(
            name=name,
            instance=f"i{instance}",
            role="general",
            max_model_len=limit + 1,
            reserved_output_tokens=1,
            max_prompt_tokens=limit,
            max_prompt_bytes=limit,  # a byte a token: what is decided by one is by the other
            bound_by=Bound.LENGTH,
            on_overflow=link(over),
            on_outage=link(out),
        )
        for name, limit, instance, over, out in zip(
            names, limits, instances, overflows, outages, strict=False
        )
    )


@st.composite
def policies(draw):
    count = draw(st.integers(1, 5))
    limits = sorted(draw(st.lists(st.integers(1, 60), min_size=count, max_size=count)))
    choice = st.lists(st.integers(0, count + 2), min_size=count, max_size=count)
    routes = routes_of(limits, draw(choice), draw(choice), draw(choice))
    chosen = draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    return RoutingPolicy(
        plan="p",
        model="m",
        routes=routes,
        by_length=tuple(routes[n].name for n in sorted(chosen)),
        byte_count=ByteCount(bytes_per_token=1.0, margin=0.0, body_limit_bytes=1000),
    )


@given(
    policy=policies(),
    size=st.integers(0, 70),
    named=st.integers(-1, 4),
    down=st.sets(st.integers(0, 7)),
)
def test_any_policy_is_followed_as_by_the_router(policy, size, named, down):
    name = policy.routes[named].name if 0 <= named < len(policy.routes) else None
    unavailable = {f"i{n}" for n in down} & {route.instance for route in policy.routes}
    decision = Router(policy).decide(prompt_tokens=size, route=name, unavailable=unavailable)
    made = ladders(policy)
    ladder = next((each for each in made if name in each.routes), made[0])
    step = ladder.step(size)
    answering = next((each for each in step.instances if each not in unavailable), None)
    if decision.action is Action.SEND:
        assert answering == decision.instance
    elif decision.action is Action.UNAVAILABLE:
        assert answering is None
    else:  # too long for all: the last one says so
        assert decision.action is Action.REFUSE
        chain = [policy.route(each) for each in policy.by_length] if name is None else None
        if chain:
            assert step.instances[0] == chain[-1].instance
        assert step.overflow == ()


@given(policies())
def test_steps_rise_and_change_something(policy):
    made = ladders(policy)
    named = [name for each in made for name in each.routes]
    assert sorted(named) == [route.name for route in policy.routes]
    for ladder in made:
        assert ladder.steps[0].least == 0
        for one, after in pairwise(ladder.steps):
            assert one.least < after.least
            assert one.instances != after.instances
        for step in ladder.steps:
            assert step.instances[0] not in step.overflow[:1]


@given(limit=st.integers(0, 10**12), other=st.integers(0, 10**12), zeros=st.integers(0, 5))
def test_a_pattern_compares_as_numbers_do(limit, other, zeros):
    pattern = re.compile(more_than(limit))
    for number in (other, limit - 1, limit, limit + 1, limit * 10, limit // 10):
        if number >= 0:
            assert bool(pattern.search("0" * zeros + str(number))) == (number > limit)


@pytest.mark.parametrize("limit", [0, 8, 9, 10, 89, 99, 18_504, 199_999, 999_999])
def test_a_pattern_by_every_number_around_it(limit):
    pattern = re.compile(more_than(limit))
    for number in range(max(0, limit - 120), limit + 120):
        assert bool(pattern.search(str(number))) == (number > limit)


@pytest.mark.parametrize(
    "text", ["", "-1", "1e9", "99999999 ", "x99999999", "9999\n9999", "+99999"]
)
def test_a_pattern_matches_nothing_but_numbers(text):
    assert not re.search(more_than(100).replace("$", r"\Z"), text)


def test_a_pattern_by_hand():
    assert more_than(185) == "^0*([1-9][0-9]{3,}|[2-9][0-9]{2}|19[0-9]{1}|18[6-9])$"
    assert more_than(9) == "^0*([1-9][0-9]{1,})$"


@pytest.mark.parametrize(
    "word", ["chat", "@chat+long-docs>chat", "10.0.0.1:80", "[::1]:80", "1h", "0.0.0.0:4000"]
)
def test_words_of_nginx_stand_as_they_are(word):
    assert nginx_word(word) == word


def test_patterns_of_nginx_are_quoted():
    assert nginx_word("~^0*([1-9][0-9]{3,}|18[6-9])$") == '"~^0*([1-9][0-9]{3,}|18[6-9])$"'


@pytest.mark.parametrize(
    "word",
    ["", "a b", "a;b", "a{", "}", '"', "'", "a\\b", "$x", "a\n", "#a", "~a b", '~a"', "~a\\", "é"],
)
def test_anything_else_is_refused(word):
    with pytest.raises(OutputError, match=r"cannot stand in a file of nginx"):
        nginx_word(word)
