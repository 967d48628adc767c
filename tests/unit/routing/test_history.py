"""fit_history: what stays, what becomes a summary, and what is refused. Tokens are words here."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import CONTRACTS

from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.routing import Message, Router, afit_history, estimate_tokens, fit_history
from vllm_advisor.routing.messages import SUMMARY_MARKER
from vllm_advisor.types.routing import ConversationPolicy

MARKER_WORDS = len(SUMMARY_MARKER.split())  # 10


def policy(above: int, *, keep: int = 2, summary: int = 5) -> ConversationPolicy:
    return ConversationPolicy(
        summarise_above_tokens=above,
        keep_last_turns=keep,
        summary_tokens=summary,
        bytes_per_token=3.0,
    )


def text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content or ""


def words(messages: Sequence[Message]) -> int:
    return sum(len(text_of(message).split()) for message in messages)


def said(role: str, content: Any, **others: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **others}


class Summariser:
    """Gives texts in turn, the last one for ever, and remembers what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts) or ["s1 s2"]
        self.asked: list[tuple[list[Message], int]] = []

    def __call__(self, messages: list[Message], max_tokens: int) -> str:
        self.asked.append((messages, max_tokens))
        return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]


def never(messages: list[Message], max_tokens: int) -> str:
    raise AssertionError((messages, max_tokens))


SYSTEM = said("system", "be kind")  # 2 words
# Three turns of 4 + 4 = 8 words, and a question of 3.
TALK = [
    SYSTEM,
    said("user", "u1 a b c"),
    said("assistant", "a1 a b c"),
    said("user", "u2 a b c"),
    said("assistant", "a2 a b c"),
    said("user", "u3 a b c"),
    said("assistant", "a3 a b c"),
    said("user", "u4 a b"),
]  # 2 + 24 + 3 = 29 words


def summarised(text: str, before: str = "be kind\n\n") -> str:
    return f"{before}{SUMMARY_MARKER}\n{text}"


def test_the_marker_has_the_words_that_are_counted_below() -> None:
    assert MARKER_WORDS == 10


def test_short_enough_stays_as_it_is() -> None:
    found = fit_history(TALK, policy(29), never, count_tokens=words)
    assert found == TALK
    assert found is not TALK
    assert fit_history([], policy(1), never, count_tokens=words) == []


def test_old_turns_become_a_summary_after_the_instructions() -> None:
    ask = Summariser("s1 s2")
    # Two turns stay: 2 + 10 of the marker + 8 + 3 = 23; 28 - 23 = 5 is room for a summary of 5.
    found = fit_history(TALK, policy(28), ask, count_tokens=words)
    assert found == [said("system", summarised("s1 s2")), *TALK[5:]]
    assert words(found) == 25
    assert ask.asked == [(TALK[1:5], 5)]


def test_turns_are_given_up_until_a_summary_has_room() -> None:
    ask = Summariser("s1 s2 s3 s4 s5")
    # Two turns leave 27 - 23 = 4 words, one turn leaves 27 - (2 + 10 + 3) = 12.
    found = fit_history(TALK, policy(27), ask, count_tokens=words)
    assert found == [said("system", summarised("s1 s2 s3 s4 s5")), TALK[7]]
    assert ask.asked == [(TALK[1:7], 5)]


def test_a_summary_that_is_too_long_costs_a_turn() -> None:
    ask = Summariser("far too long a summary it is", "s1 s2")
    found = fit_history(TALK, policy(28), ask, count_tokens=words)
    assert found == [said("system", summarised("s1 s2")), TALK[7]]
    assert [len(messages) for messages, _ in ask.asked] == [4, 6]


def test_a_summary_longer_than_agreed_is_taken_if_all_fits() -> None:
    # keep 1: 2 + 10 + 3 = 15; with 7 words 22 of 28, though 5 were agreed.
    found = fit_history(TALK, policy(28, keep=1), Summariser("1 2 3 4 5 6 7"), count_tokens=words)
    assert words(found) == 22


def test_the_last_turn_leaves_less_than_a_summary_of_full_length() -> None:
    ask = Summariser("s1 s2 s3")
    # 2 + 10 + 3 = 15; 18 - 15 = 3 of the 5 tokens.
    found = fit_history(TALK, policy(18, keep=1), ask, count_tokens=words)
    assert words(found) == 18
    assert [most for _, most in ask.asked] == [3]


def test_what_cannot_be_shortened_is_refused() -> None:
    # 2 + 10 + 3 = 15 leave no word for a summary.
    with pytest.raises(InfeasibleError) as caught:
        fit_history(TALK, policy(15), never, count_tokens=words)
    assert caught.value.what == ("29 tokens cannot be shortened to 15: the last turn alone has 3")
    assert "long-document route" in caught.value.fix
    with pytest.raises(InfeasibleError, match="the summary has 4 tokens where 3 were allowed"):
        fit_history(TALK, policy(18), Summariser("1 2 3 4"), count_tokens=words)
    with pytest.raises(InfeasibleError, match=r"29 tokens .* to 2: the last turn alone has 29"):
        fit_history([said("user", "w " * 29)], policy(2), never, count_tokens=words)
    with pytest.raises(InfeasibleError, match="all of them are instructions"):
        fit_history([SYSTEM], policy(1), never, count_tokens=words)


def test_summaries_never_pile_up() -> None:
    once = fit_history(TALK, policy(28), Summariser("s1 s2"), count_tokens=words)
    more = [*once, said("assistant", "a4 a b c")]  # 25 + 4 = 29
    ask = Summariser("t1")
    twice = fit_history(more, policy(28), ask, count_tokens=words)
    # Two turns, 8 + 7, leave 28 - (2 + 10 + 15) = 1; one turn 28 - (2 + 10 + 7) = 9.
    assert twice == [said("system", summarised("t1")), *more[3:]]
    assert ask.asked == [([said("system", summarised("s1 s2", "")), *TALK[5:7]], 5)]


def test_without_instructions_the_summary_is_the_system_message() -> None:
    # 10 + 8 + 3 = 21 and 5 more.
    once = fit_history(TALK[1:], policy(26), Summariser("s1"), count_tokens=words)
    assert once == [said("system", summarised("s1", "")), *TALK[5:]]
    more = [*once, said("assistant", "a b c d e f")]
    ask = Summariser("t1")
    twice = fit_history(more, policy(26), ask, count_tokens=words)
    assert twice[0] == said("system", summarised("t1", ""))
    assert ask.asked[0][0][0] == said("system", summarised("s1", ""))


def test_an_earlier_summary_alone_may_be_what_is_too_long() -> None:
    talk = [said("system", summarised("1 2 3 4 5 6 7 8 9")), said("user", "u1 a b c")]
    # 2 + 10 + 9 + 4 = 25; without the summary 16.
    ask = Summariser("s1")
    found = fit_history(talk, policy(24), ask, count_tokens=words)
    assert found == [said("system", summarised("s1")), talk[1]]
    assert ask.asked == [([said("system", summarised("1 2 3 4 5 6 7 8 9", ""))], 5)]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_parts_get_a_part_more(role: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    parts = [{"type": "text", "text": "be kind"}, picture]
    talk = [said(role, parts), *TALK[1:]]
    once = fit_history(talk, policy(28), Summariser("s1"), count_tokens=words)
    added = {"type": "text", "text": summarised("s1", "")}
    assert once[0] == said(role, [*parts, added])
    ask = Summariser("t1")
    twice = fit_history(
        [*once, said("assistant", "a4 a b c d")], policy(28), ask, count_tokens=words
    )
    assert twice[0] == said(role, [*parts, {"type": "text", "text": summarised("t1", "")}])
    assert ask.asked[0][0][0] == said("system", summarised("s1", ""))


def test_a_summary_is_found_in_any_of_the_instructions() -> None:
    first = said("system", summarised("s1 s2"))
    talk = [first, said("developer", "no jokes"), *TALK[1:]]  # 14 + 2 + 27 = 43
    ask = Summariser("t1")
    # 2 + 2 + 10 + 8 + 3 = 25 and 5 more.
    found = fit_history(talk, policy(30), ask, count_tokens=words)
    assert found[:2] == [SYSTEM, said("developer", summarised("t1", "no jokes\n\n"))]
    assert ask.asked[0][0] == [said("system", summarised("s1 s2", "")), *TALK[1:5]]


def test_the_marker_in_a_summary_changes_nothing() -> None:
    echo = summarised("s1", "")
    # 2 + 10 + 11 + 11 = 34.
    once = fit_history(TALK, policy(29, keep=1), Summariser(echo), count_tokens=words) == TALK
    assert once
    talk = [*TALK, said("assistant", "a " * 10)]  # 39; the last turn has 13
    found = fit_history(talk, policy(38, keep=1), Summariser(echo), count_tokens=words)
    assert found[0]["content"] == summarised(echo)
    ask = Summariser("t1")
    fit_history([*found, said("user", "b " * 5)], policy(38, keep=1), ask, count_tokens=words)
    assert ask.asked[0][0][0]["content"] == summarised(echo, "")


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_tool_results_stay_with_their_calls() -> None:
    talk = [
        said("user", "u1 a"),
        said("assistant", None, tool_calls=[CALL]),
        said("tool", "r1 a b", tool_call_id="1"),
        said("assistant", "a1"),
        said("user", "u2"),
        said("assistant", None, tool_calls=[CALL]),
        said("tool", "r2 a b c d e f g", tool_call_id="1"),
    ]  # 2 + 3 + 1 + 1 + 8 = 15
    ask = Summariser("s1")
    # 10 + 9 = 19 and one more. The estimate would count the calls, words do not.
    with pytest.raises(InfeasibleError):
        fit_history(talk, policy(14), ask, count_tokens=words)
    talk[2]["content"] = "r1 " * 20  # 32
    found = fit_history(talk, policy(31), ask, count_tokens=words)
    assert found == [said("system", summarised("s1", "")), *talk[4:]]
    assert ask.asked[-1][0] == talk[:4]


def test_before_the_first_user_message_is_a_turn_of_its_own() -> None:
    talk = [said("tool", "r a b c"), said("assistant", "hello " * 20), said("user", "u1")]
    ask = Summariser("s1")
    found = fit_history(talk, policy(16), ask, count_tokens=words)
    assert found == [said("system", summarised("s1", "")), talk[2]]
    assert ask.asked == [(talk[:2], 5)]


def test_without_a_user_message_all_is_one_turn() -> None:
    talk = [said("assistant", "hello a"), said("assistant", "hello b")]
    assert fit_history(talk, policy(4), never, count_tokens=words) == talk
    with pytest.raises(InfeasibleError, match="the last turn alone has 4"):
        fit_history(talk, policy(3), never, count_tokens=words)


def test_each_of_several_user_messages_is_a_turn() -> None:
    talk = [said("user", "w " * 20), said("user", "u2"), said("user", "u3")]
    found = fit_history(talk, policy(17), Summariser("s1"), count_tokens=words)
    assert found == [said("system", summarised("s1", "")), *talk[1:]]


def test_fewer_turns_than_may_stay() -> None:
    ask = Summariser("s1")
    # One turn has to go all the same: 2 + 10 + 11 = 23, and the summary.
    found = fit_history(TALK, policy(28, keep=9), ask, count_tokens=words)
    assert found == [said("system", summarised("s1")), *TALK[5:]]
    assert ask.asked == [(TALK[1:5], 5)]


def test_instructions_in_between_belong_to_their_turn() -> None:
    talk = [*TALK[:3], said("system", "z " * 20), *TALK[3:]]
    ask = Summariser("s1")
    found = fit_history(talk, policy(28), ask, count_tokens=words)
    assert found == [said("system", summarised("s1")), *TALK[5:]]
    assert ask.asked[0][0] == talk[1:6]


def test_the_length_of_the_decision_wins_over_the_policy() -> None:
    found = fit_history(
        TALK, policy(99), Summariser("s1"), count_tokens=words, max_prompt_tokens=28
    )
    assert words(found) == 24
    assert fit_history(TALK, policy(5), never, count_tokens=words, max_prompt_tokens=29) == TALK


def test_the_rules_come_from_a_policy_or_a_router() -> None:
    rules = CONTRACTS.conversation
    long = [SYSTEM, said("user", "w " * 6000), said("assistant", "w " * 100), said("user", "u")]
    found = fit_history(long, rules, Summariser("s1"), count_tokens=words, max_prompt_tokens=6000)
    for each in (CONTRACTS, Router(CONTRACTS)):
        assert found == fit_history(
            long, each, Summariser("s1"), count_tokens=words, max_prompt_tokens=6000
        )
    without = dataclasses.replace(CONTRACTS, conversation=None)
    for each in (without, Router(without)):
        with pytest.raises(InputError, match="no rules for conversations"):
            fit_history(TALK, each, never)
    with pytest.raises(InputError, match="dict is no policy"):
        fit_history(TALK, {}, never)
    with pytest.raises(InputError, match="NoneType is no policy"):
        fit_history(TALK, None, never)


@pytest.mark.parametrize(
    "changes", [{"keep_last_turns": 0}, {"summary_tokens": -1}, {"bytes_per_token": 0.0}]
)
def test_rules_that_mean_nothing(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"conversation.{next(iter(changes))} is .*, not > 0"):
        dataclasses.replace(policy(9), **changes)


@pytest.mark.parametrize(
    ("message", "where", "what"),
    [
        ("hello", "messages[1]", "not str"),
        ({"content": "hello"}, "messages[1].role", "None is no role"),
        (said("bot", "hello"), "messages[1].role", "'bot' is no role"),
        (said("user", 3), "messages[1].content", "a text, a list of parts"),
        (said("user", ["hello"]), "messages[1].content", "a text, a list of parts"),
        (said("user", [{"type": "text", "text": 3}]), "messages[1].content", "a text, a list"),
    ],
)
def test_messages_of_unknown_shape(message: Any, where: str, what: str) -> None:
    for read in (
        lambda talk: fit_history(talk, policy(9), never),
        lambda talk: estimate_tokens(talk, 3.0),
    ):
        with pytest.raises(InputError, match=what) as caught:
            read([SYSTEM, message])
        assert caught.value.where == where
        assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "what"), [("", "an empty text"), (" \n", "an empty text"), (None, "NoneType")]
)
def test_no_summary(text: Any, what: str) -> None:
    with pytest.raises(InputError, match=f"summarise gives {what}"):
        fit_history(TALK, policy(28), lambda *_: text, count_tokens=words)


def test_what_is_no_count() -> None:
    for count in (lambda _: None, lambda _: -1, lambda _: 2.5):
        with pytest.raises(InputError, match="is no number of tokens"):
            fit_history(TALK, policy(28), never, count_tokens=count)
    with pytest.raises(InputError, match="0 is no number of tokens") as caught:
        fit_history(TALK, policy(28), never, max_prompt_tokens=0)
    assert caught.value.where == "max_prompt_tokens"


def test_sync_and_async_are_told_apart() -> None:
    async def later(messages: list[Message], max_tokens: int) -> str:
        return f"{len(messages)} {max_tokens}"

    with pytest.raises(InputError) as caught:
        fit_history(TALK, policy(28), later, count_tokens=words)
    assert "afit_history" in caught.value.fix
    with pytest.raises(InputError, match="gives str, which cannot be awaited"):
        asyncio.run(afit_history(TALK, policy(28), Summariser(), count_tokens=words))
    found = asyncio.run(afit_history(TALK, policy(28), later, count_tokens=words))
    assert found == [said("system", summarised("4 5")), *TALK[5:]]


def test_the_estimate() -> None:
    # 8 for the answer; "be kind" 7 bytes / 3 = 2.33, so 3 + 8; 6 bytes of two letters and e acute,
    # 2 bytes each, so 2 + 8.
    assert estimate_tokens([], 3.0) == 8
    assert estimate_tokens([SYSTEM, said("user", "\xe9\xe9\xe9")], 3.0) == 8 + 11 + 10
    # Parts are joined by a line feed: 3 + 1 + 3 = 7 bytes.
    parts = [{"type": "text", "text": "abc"}, {"type": "refusal", "refusal": "def"}]
    assert estimate_tokens([said("assistant", parts)], 3.0) == 8 + 3 + 8
    # A call: a line feed and {"tool_call_id": "1"}, 21 bytes, beside no text: 22 / 3 = 7.33.
    assert estimate_tokens([said("tool", None, tool_call_id="1")], 3.0) == 8 + 8 + 8
    # What is None is not there at all.
    assert estimate_tokens([said("user", "abc", name=None)], 3.0) == 8 + 1 + 8
    # A lone surrogate, as json.loads gives it, is counted and not a failure.
    assert estimate_tokens([said("user", "\ud800")], 3.0) == 8 + 1 + 8


def test_what_the_estimate_cannot_know() -> None:
    picture = said("user", [{"type": "image_url", "image_url": {"url": "https://example.com"}}])
    with pytest.raises(InputError, match="'image_url' has no length") as caught:
        estimate_tokens([SYSTEM, picture], 3.0)
    assert caught.value.where == "messages[1].content"
    assert "count_tokens" in caught.value.fix
    with pytest.raises(InputError, match="no JSON"):
        estimate_tokens([said("assistant", None, tool_calls=[object()])], 3.0)


def test_the_estimate_counts_unless_another_does() -> None:
    talk = [said("user", "x" * 300), said("assistant", "y" * 300), said("user", "z")]
    # 8 + 108 + 108 + (1 + 8) = 233.
    assert fit_history(talk, policy(233), never) == talk
    ask = Summariser("s")
    found = fit_history(talk, policy(232), ask)
    assert found == [said("system", summarised("s", "")), talk[2]]
    assert estimate_tokens(found, 3.0) <= 232


# Lengths such that most conversations have to be shortened, and most of these can be.
TEXTS = st.lists(st.sampled_from(["a", "b\n", "\nc", " "]), max_size=9).map(" ".join)
SHORT = st.sampled_from(["", "a", "a b\n", " \n\n"])
TOOL_USE = st.lists(TEXTS, min_size=1, max_size=2).map(
    lambda results: [
        said("assistant", None, tool_calls=[CALL] * len(results)),
        *[said("tool", result, tool_call_id="1") for result in results],
    ]
)
REPLIES = st.one_of(TEXTS.map(lambda text: [said("assistant", text)]), TOOL_USE)
TURNS = st.tuples(TEXTS, st.lists(REPLIES, max_size=2)).map(
    lambda turn: [said("user", turn[0]), *[each for reply in turn[1] for each in reply]]
)
HEADS = st.lists(
    st.builds(
        said,
        st.sampled_from(["system", "developer"]),
        SHORT | SHORT.map(lambda text: [{"type": "text", "text": text}]),
    ),
    max_size=2,
)
TALKS = st.tuples(
    HEADS, st.lists(REPLIES, max_size=1), st.lists(TURNS, min_size=1, max_size=7)
).map(lambda parts: [*parts[0], *[m for some in parts[1:] for each in some for m in each]])
POLICIES = st.builds(policy, st.integers(20, 50), keep=st.integers(1, 4), summary=st.integers(1, 9))
SUMMARIES = st.integers(1, 12).map(lambda count: " ".join("s" * count))


@given(talk=TALKS, rules=POLICIES, summary=SUMMARIES)
def test_what_always_holds(talk: list[Message], rules: ConversationPolicy, summary: str) -> None:
    before = copy.deepcopy(talk)
    ask = Summariser(summary)
    try:
        found = fit_history(talk, rules, ask, count_tokens=words)
    except InfeasibleError:
        assert words(talk) > rules.summarise_above_tokens
        return
    finally:
        assert talk == before
    assert words(found) <= rules.summarise_above_tokens
    assert fit_history(found, rules, never, count_tokens=words) == found
    if not ask.asked:
        assert found == talk
        return
    # The head with its texts in front, and behind it the last messages: none twice, none lost.
    past, most = ask.asked[-1]
    assert 1 <= most <= rules.summary_tokens
    head = [m for m in talk if m["role"] in ("system", "developer")]
    for old, new in zip(head, found, strict=False):
        assert text_of(new).startswith(text_of(old))
        assert new["role"] == old["role"]
    kept = found[max(len(head), 1) :]
    assert [*head, *past, *kept] == talk
    users = [m for m in talk if m["role"] == "user"]
    assert not users or [m for m in kept if m["role"] == "user"][-1] == users[-1]
    open_calls = 0
    for message in kept:
        if message["role"] == "tool":
            open_calls -= 1
            assert open_calls >= 0
        else:
            open_calls = len(message.get("tool_calls") or ())


@given(talk=TALKS, rules=POLICIES, summary=SUMMARIES)
def test_sync_equals_async(talk: list[Message], rules: ConversationPolicy, summary: str) -> None:
    now, then = Summariser(summary), Summariser(summary)

    async def later(messages: list[Message], max_tokens: int) -> str:
        return then(messages, max_tokens)

    def result(of: Callable[[], list[Message]]) -> list[Message] | str:
        try:
            return of()
        except InfeasibleError as error:
            return error.what

    assert result(lambda: fit_history(talk, rules, now, count_tokens=words)) == result(
        lambda: asyncio.run(afit_history(talk, rules, later, count_tokens=words))
    )
    assert now.asked == then.asked


@given(head=HEADS, turns=st.lists(TURNS, min_size=2, max_size=12), rules=POLICIES)
def test_a_conversation_that_goes_on(
    head: list[Message], turns: list[list[Message]], rules: ConversationPolicy
) -> None:
    """Each result is the next history: one summary at most, and the last turn is always there."""
    history = list(head)
    for number, turn in enumerate(turns):
        ask = Summariser(f"s{number}")
        try:
            history = fit_history([*history, *turn], rules, ask, count_tokens=words)
        except InfeasibleError:
            return
        assert history[-len(turn) :] == turn
        markers = sum(text_of(message).count(SUMMARY_MARKER) for message in history)
        assert markers == 1 if ask.asked else markers <= 1
        if ask.asked:
            assert text_of(history[max(len(head), 1) - 1]).endswith(f"{SUMMARY_MARKER}\ns{number}")
            assert [m["role"] for m in history[: len(head)]] == [m["role"] for m in head]
