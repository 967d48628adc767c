"""Router: the order short, retrieval, long; fallbacks; what is asked for by name or by class."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import CHAT, CONTRACTS, LONG

from vllm_advisor.errors import InputError
from vllm_advisor.routing import Action, Router
from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.types.workload import Needs

ROUTER = Router(CONTRACTS)
ONLY_SHORT = dataclasses.replace(
    CONTRACTS,
    routes=tuple(
        dataclasses.replace(r, on_overflow=None, on_outage=None)
        for r in CONTRACTS.routes
        if r.name != "long-docs"
    ),
    by_length=("chat",),
    classes=(),
    retrieval=dataclasses.replace(CONTRACTS.retrieval, fallback=None),
)


@pytest.mark.parametrize(
    ("tokens", "action", "route"),
    [
        (0, Action.SEND, "chat"),
        (6168, Action.SEND, "chat"),
        (6169, Action.SEND, "long-docs"),
        (120_880, Action.SEND, "long-docs"),
        (120_881, Action.REFUSE, None),
    ],
)
def test_length_alone(tokens: int, action: Action, route: str | None) -> None:
    found = ROUTER.decide(prompt_tokens=tokens)
    assert (found.action, found.route) == (action, route)
    assert f"{tokens:,}" in found.reason


def test_a_lookup_is_retrieved_before_it_is_read_whole() -> None:
    asked = ROUTER.decide(prompt_tokens=100_000, needs="lookup")
    assert (asked.action, asked.route, asked.retrieve_tokens) == (Action.RETRIEVE, "rag", 4000)
    assert asked.prompt_tokens == 4300
    found = ROUTER.decide(prompt_tokens=100_000, needs="lookup", retrieved_tokens=4100)
    assert (found.action, found.model, found.prompt_tokens) == (Action.SEND, "rag", 4100)
    assert found.retrieved
    nothing = ROUTER.decide(prompt_tokens=100_000, needs="lookup", retrieved_tokens=0)
    assert (nothing.action, nothing.model) == (Action.SEND, "long-docs")
    too_much = ROUTER.decide(prompt_tokens=100_000, needs="lookup", retrieved_tokens=6169)
    assert (too_much.action, too_much.model) == (Action.SEND, "long-docs")
    assert not too_much.retrieved


def test_a_lookup_that_is_short_needs_no_retrieval() -> None:
    assert ROUTER.decide(prompt_tokens=3000, needs="lookup").route == "chat"


def test_beyond_every_instance_retrieval_still_answers() -> None:
    found = ROUTER.decide(prompt_tokens=10**7, needs="lookup")
    assert found.action is Action.RETRIEVE
    refused = ROUTER.decide(prompt_tokens=10**7, needs="lookup", retrieved_tokens=0)
    assert refused.action is Action.REFUSE


def test_a_class_wins_over_the_length() -> None:
    pinned = ROUTER.decide(prompt_tokens=500, request_class="contract-review")
    assert (pinned.route, pinned.instance) == ("long-docs", "long-docs")
    assert "whole-context" in pinned.reason
    looked = ROUTER.decide(prompt_tokens=100_000, request_class="clause-lookup")
    assert looked.action is Action.RETRIEVE
    chat = ROUTER.decide(prompt_tokens=9000, request_class="chat")
    assert chat.route == "long-docs"


def test_needs_given_wins_over_the_needs_of_the_class() -> None:
    whole = ROUTER.decide(
        prompt_tokens=100_000, request_class="clause-lookup", needs=Needs.WHOLE_DOCUMENT
    )
    assert (whole.action, whole.route) == (Action.SEND, "long-docs")


def test_a_route_asked_for_by_name() -> None:
    assert ROUTER.decide(prompt_tokens=10, route="long-docs").route == "long-docs"
    assert ROUTER.decide(prompt_tokens=9000, route="chat").route == "long-docs"
    assert ROUTER.decide(prompt_tokens=5000, route="rag").route == "rag"
    assert ROUTER.decide(prompt_tokens=9000, route="rag").action is Action.RETRIEVE


def test_a_history_is_shortened_before_a_long_instance_is_asked() -> None:
    found = ROUTER.decide(prompt_tokens=9000, history_tokens=8500)
    assert (found.action, found.model, found.max_prompt_tokens) == (
        Action.BOUND_HISTORY,
        "chat",
        6168,
    )
    # 9,000 - 2,000 = 7,000 tokens remain without any history: too many.
    assert ROUTER.decide(prompt_tokens=9000, history_tokens=2000).route == "long-docs"
    # 9,000 - 3,332 + 500 for a summary = 6,168.
    assert ROUTER.decide(prompt_tokens=9000, history_tokens=3331).action is Action.SEND
    assert ROUTER.decide(prompt_tokens=9000, history_tokens=3332).action is Action.BOUND_HISTORY
    nothing = ROUTER.decide(prompt_tokens=9000, needs="recent_only", history_tokens=0)
    assert (nothing.action, nothing.route) == (Action.SEND, "long-docs")
    assert ROUTER.decide(prompt_tokens=9000, needs="recent_only").action is Action.BOUND_HISTORY
    whole = ROUTER.decide(prompt_tokens=9000, history_tokens=8500, needs="whole_document")
    assert (whole.action, whole.route) == (Action.SEND, "long-docs")


def test_room_for_a_longer_answer_than_is_reserved() -> None:
    """7,168 - 3,000 = 4,168; a shorter answer than reserved changes nothing."""
    assert ROUTER.decide(prompt_tokens=4168, max_tokens=3000).route == "chat"
    assert ROUTER.decide(prompt_tokens=4169, max_tokens=3000).route == "long-docs"
    assert ROUTER.decide(prompt_tokens=6169, max_tokens=1).route == "long-docs"
    # 122,780 + 100 = 122,880: nobody else could take it.
    assert ROUTER.decide(prompt_tokens=122_780, max_tokens=100).route == "long-docs"
    assert ROUTER.decide(prompt_tokens=122_781, max_tokens=100).action is Action.REFUSE
    refused = ROUTER.decide(prompt_tokens=10, max_tokens=130_000)
    assert refused.action is Action.REFUSE
    assert "a shorter answer" in refused.reason
    assert "-" not in refused.reason.replace("long-docs", "")


def test_passages_are_retrieved_where_one_fits_at_least() -> None:
    """7,168 - 6,068 - 300 = 800 tokens, a passage; one token less is none."""
    fits = ROUTER.decide(prompt_tokens=100_000, needs="lookup", max_tokens=6068)
    assert (fits.action, fits.retrieve_tokens) == (Action.RETRIEVE, 800)
    assert (
        ROUTER.decide(prompt_tokens=100_000, needs="lookup", max_tokens=6069).route == "long-docs"
    )


def test_an_outage() -> None:
    stands = ROUTER.decide(prompt_tokens=100, unavailable={"chat"})
    assert (stands.action, stands.route, stands.stand_ins) == (Action.SEND, "long-docs", ())
    assert "does not answer" in stands.reason
    assert ROUTER.decide(prompt_tokens=100).stand_ins == ("long-docs",)
    nobody = ROUTER.decide(prompt_tokens=9000, unavailable={"long-docs"})
    assert (nobody.action, nobody.route) == (Action.UNAVAILABLE, None)
    history = ROUTER.decide(prompt_tokens=9000, history_tokens=8500, unavailable={"chat"})
    assert (history.action, history.route) == (Action.SEND, "long-docs")


def test_without_a_long_instance() -> None:
    router = Router(ONLY_SHORT)
    refused = router.decide(prompt_tokens=6169)
    assert refused.action is Action.REFUSE
    assert "needs=lookup" in refused.reason
    assert router.decide(prompt_tokens=6169, needs="lookup").action is Action.RETRIEVE
    down = router.decide(prompt_tokens=1, unavailable={"chat"})
    assert down.action is Action.UNAVAILABLE


def test_text_is_counted_by_the_tokenizer() -> None:
    assert ROUTER.decide("a b c", tokenizer=str.split).prompt_tokens == 3
    assert ROUTER.decide("a b c", tokenizer=len).prompt_tokens == 5
    for wrong in ({"prompt": "a"}, {}, {"prompt": "a", "prompt_tokens": 1}):
        with pytest.raises(InputError):
            ROUTER.decide(**wrong)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"prompt_tokens": -1}, "prompt_tokens"),
        ({"prompt_tokens": True}, "prompt_tokens"),
        ({"prompt_tokens": 1, "max_tokens": 0}, "max_tokens"),
        ({"prompt_tokens": 1, "needs": "everything"}, "needs"),
        ({"prompt_tokens": 1, "route": "short"}, "route"),
        ({"prompt_tokens": 1, "request_class": "none"}, "request_class"),
        ({"prompt_tokens": 1, "history_tokens": 2}, "history_tokens"),
        ({"prompt_tokens": 1, "unavailable": "chat"}, "unavailable"),
        ({"prompt_tokens": 1, "unavailable": ["chatt"]}, "unavailable"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        ROUTER.decide(**given)
    assert caught.value.where == place
    assert caught.value.fix


@given(
    tokens=st.integers(0, 400_000),
    needs=st.sampled_from([None, *Needs]),
    max_tokens=st.none() | st.integers(1, 6000),
    history=st.none() | st.integers(0, 10_000),
    retrieved=st.none() | st.integers(0, 9000),
    down=st.sets(st.sampled_from(["chat", "long-docs"])),
)
def test_nothing_is_sent_where_it_does_not_fit(
    *,
    tokens: int,
    needs: Needs | None,
    max_tokens: int | None,
    history: int | None,
    retrieved: int | None,
    down: set[str],
) -> None:
    found = ROUTER.decide(
        prompt_tokens=tokens,
        needs=needs,
        max_tokens=max_tokens,
        history_tokens=None if history is None else min(history, tokens),
        retrieved_tokens=retrieved,
        unavailable=down,
    )
    if found.action in (Action.SEND, Action.RETRIEVE):
        route = CONTRACTS.route(found.route)
        assert found.prompt_tokens + (max_tokens or 0) <= route.max_model_len
        assert route.instance not in down
        assert found.headers == {"x-workload": route.name}
    assert (found.route is None) == (found.action in (Action.REFUSE, Action.UNAVAILABLE))


def test_the_policy_is_read_back() -> None:
    assert RoutingPolicy.from_dict(CONTRACTS.to_dict()) == CONTRACTS


@pytest.mark.parametrize(
    "changes",
    [
        {"routes": (CHAT, CHAT, LONG)},
        {"routes": (CHAT,)},
        {"by_length": ()},
        {"by_length": ("long-docs", "chat")},
    ],
)
def test_a_policy_that_contradicts_itself(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        dataclasses.replace(CONTRACTS, **changes)
    with pytest.raises(ValueError):
        dataclasses.replace(CHAT, max_prompt_tokens=6169)
