"""examples/rag_first against scripted answers; tokens are words, as a fake /tokenize counts them."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.routing import Router
from vllm_advisor.routing.messages import SUMMARY_MARKER
from vllm_advisor.types.routing import (
    Bound,
    ByteCount,
    ConversationPolicy,
    PolicyRoute,
    Retrieval,
    RoutingPolicy,
)

FOLDER = Path(__file__).parents[3] / "examples" / "rag_first"
sys.path.insert(0, str(FOLDER))
app = importlib.import_module("app")
retrieval = importlib.import_module("retrieval")
sys.path.remove(str(FOLDER))


def route(name: str, instance: str, length: int, reserved: int, **others: Any) -> PolicyRoute:
    return PolicyRoute(
        name=name,
        instance=instance,
        role="short" if instance == "chat" else "long-document",
        max_model_len=length,
        reserved_output_tokens=reserved,
        max_prompt_tokens=length - reserved,
        max_prompt_bytes=3 * (length - reserved),
        bound_by=Bound.LENGTH,
        **others,
    )


# Short prompts up to 300 tokens, whole documents up to 3,800.
NEXT = {"on_overflow": "long-docs", "on_outage": "long-docs"}
POLICY = RoutingPolicy(
    plan="p",
    model="m",
    routes=(
        route("chat", "chat", 400, 100, **NEXT),
        route("rag", "chat", 400, 100, retrieved=True, **NEXT),
        route("long-docs", "long-docs", 4000, 200),
    ),
    by_length=("chat", "long-docs"),
    byte_count=ByteCount(bytes_per_token=4.0, margin=0.25, body_limit_bytes=10**6),
    retrieval=Retrieval(route="rag", top_k=2, chunk_tokens=60, question_tokens=100),
    conversation=ConversationPolicy(
        summarise_above_tokens=300, keep_last_turns=2, summary_tokens=40, bytes_per_token=3.0
    ),
)
FILLER = "The carrier brings the goods to the yard before noon and signs the green book there."
PENALTY = "The penalty for late delivery is 500 euros a day."
# 16 words in each of 100 paragraphs, and 10 in the one that is asked for.
DOCUMENT = "\n\n".join([*[FILLER] * 50, PENALTY, *[FILLER] * 50])


class Client:
    """An OpenAI client that answers by a script, and keeps what it was asked."""

    base_url = "http://127.0.0.1:1/v1/"

    def __init__(self, *script: str | Exception, tokenizes: bool = True) -> None:
        self.script = list(script)
        self.asked: list[dict[str, Any]] = []
        self.tokenizes = tokenizes
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def post(self, url: str, *, cast_to: type, body: dict[str, Any]) -> dict[str, int]:
        if not self.tokenizes:
            raise RuntimeError("404")
        assert (url, cast_to, body["model"]) == ("http://127.0.0.1:1/tokenize", object, "chat")
        return {"count": words(body["messages"])}

    def create(self, **request: Any) -> SimpleNamespace:
        self.asked.append(request)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        message = SimpleNamespace(content=answer)
        return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

    def models(self) -> list[str]:
        return [request["model"] for request in self.asked]


def words(messages: list[dict[str, Any]]) -> int:
    return sum(len(message["content"].split()) for message in messages)


def made(client: Client, document: str = DOCUMENT, policy: RoutingPolicy = POLICY) -> Any:
    return app.App(Router(policy), client, document)


def test_passages_answer() -> None:
    client = Client("500 euros a day")
    assert made(client).ask("What is the penalty for late delivery?") == "500 euros a day"
    (asked,) = client.asked
    assert asked["model"] == "rag"
    assert asked["extra_headers"] == {"x-workload": "rag"}
    assert asked["max_tokens"] == 100
    assert PENALTY in asked["messages"][-1]["content"]
    assert words(asked["messages"]) <= 220


def test_what_the_passages_do_not_hold_is_looked_for_in_the_whole_document() -> None:
    client = Client("NOT_IN_PASSAGES", "at noon")
    assert made(client).ask("When does the penalty apply?") == "at noon"
    assert client.models() == ["rag", "long-docs"]
    assert client.asked[1]["extra_headers"] == {"x-workload": "long-docs"}
    assert client.asked[1]["max_tokens"] == 200
    assert DOCUMENT in client.asked[1]["messages"][-1]["content"]


def test_no_passage_for_the_question() -> None:
    client = Client("no idea")
    made(client).ask("Wer unterschreibt?")
    assert client.models() == ["long-docs"]


def test_a_short_document_goes_whole_to_the_short_model() -> None:
    client = Client("500")
    made(client, PENALTY).ask("How much?")
    assert client.models() == ["chat"]
    assert PENALTY in client.asked[0]["messages"][-1]["content"]


def test_too_long_for_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client("NOT_IN_PASSAGES", "500 euros")
    longest = "\n\n".join([DOCUMENT] * 3)  # 3 x 1,610 words
    talk = made(client, longest)
    questions = ["When does the penalty apply?", ""]
    assert app.answer_all(talk, questions, RuntimeError) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: 4,8" in err
    assert "more than any instance reads" in err
    # The next question is answered all the same, and knows nothing of the one that was not.
    assert app.answer_all(talk, ["What is the penalty?"], RuntimeError) == 0
    assert capsys.readouterr().out == "500 euros\n"
    assert [message["role"] for message in talk.talk] == ["system", "user", "assistant"]


def test_an_outage_is_stood_in_for() -> None:
    client = Client(ConnectionError("refused"), "500 euros")
    assert made(client).ask("What is the penalty?") == "500 euros"
    assert client.models() == ["rag", "long-docs"]
    assert client.asked[1]["extra_headers"] == {"x-workload": "long-docs"}
    assert client.asked[0]["messages"] == client.asked[1]["messages"]


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client(ConnectionError("refused"), ConnectionError("refused"))
    assert app.answer_all(made(client), ["What is the penalty?"], RuntimeError) == 3
    assert "error: nobody answers of rag, long-docs" in capsys.readouterr().err


def test_who_is_known_to_be_down_is_not_asked() -> None:
    """The short model fails at the summary; nothing stands in for passages in this policy."""
    routes = [dataclasses.replace(r, on_outage=None) if r.retrieved else r for r in POLICY.routes]
    client = Client(ConnectionError("refused"), "they talked")
    talk = made(client, policy=dataclasses.replace(POLICY, routes=tuple(routes)))
    talk.talk += said(3, 80)
    with pytest.raises(app.UnavailableError, match="nobody answers: chat"):
        talk.ask("What is the penalty?")
    assert client.models() == ["chat", "long-docs"]


def test_an_error_of_the_api_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client(RuntimeError("bad key"))
    assert app.answer_all(made(client), ["What is the penalty?"], RuntimeError) == 3
    assert "error: bad key" in capsys.readouterr().err


def said(turns: int, length: int) -> list[dict[str, str]]:
    """Turns of ``length`` words each."""
    half = "w " * (length // 2)
    return [{"role": role, "content": half} for _ in range(turns) for role in ("user", "assistant")]


def test_a_long_conversation_is_summarised() -> None:
    client = Client("they talked", "fine")
    talk = made(client, "")
    talk.talk += said(3, 100)
    last = talk.talk[-2:]
    # 12 words of instructions, 300 of turns, 3 of the question; one turn of two can stay.
    assert words(talk.talk) == 312
    assert talk.ask("how are you") == "fine"
    assert client.models() == ["chat", "chat"]
    summary, asked = client.asked
    assert (summary["max_tokens"], asked["max_tokens"]) == (40, 100)
    assert "at most 20 words" in summary["messages"][0]["content"]
    # 12 + 10 of the marker + 2 + 100 + 3.
    assert words(asked["messages"]) == 127
    assert asked["messages"][0]["content"].endswith(f"{SUMMARY_MARKER}\nthey talked")
    assert asked["messages"][1:3] == last
    # The conversation goes on with what was sent.
    assert talk.talk[:-1] == asked["messages"]
    assert talk.talk[-1]["content"] == "fine"


def test_a_conversation_about_a_document_leaves_room_for_the_passages() -> None:
    client = Client("they talked", "500 euros")
    talk = made(client)
    talk.talk += said(3, 80)
    talk.ask("What is the penalty?")
    summary, asked = client.asked
    assert (summary["model"], asked["model"]) == ("chat", "rag")
    assert words(asked["messages"]) <= 300
    assert PENALTY in asked["messages"][-1]["content"]
    assert "they talked" in talk.talk[0]["content"]
    assert PENALTY not in str(talk.talk)


def test_a_first_question_that_is_too_long_goes_to_the_long_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = Client("fine")
    assert made(client, "").ask("w " * 400) == "fine"
    assert client.models() == ["long-docs"]
    assert "not within the 300 that chat takes" in capsys.readouterr().err


def test_the_document_is_the_same_beginning_for_every_question() -> None:
    client = Client("NOT_IN_PASSAGES", "one", "NOT_IN_PASSAGES", "two")
    talk = made(client)
    talk.ask("When does the penalty apply?")
    talk.ask("And for whom does the penalty apply?")
    first, second = client.asked[1]["messages"], client.asked[3]["messages"]
    assert second[:2] == first
    roles = [message["role"] for message in second]
    assert roles == ["system", "user", "assistant", "user"]


def test_tokens_are_estimated_where_nobody_counts(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client("500", tokenizes=False)
    made(client).ask("What is the penalty?")
    assert client.models() == ["rag"]
    assert capsys.readouterr().err.count("tokens are estimated") == 1


def test_a_folder_is_one_document() -> None:
    text = retrieval.read_document(FOLDER / "documents")
    assert "[service-agreement.md]" in text
    assert "ninety days" in text
    assert "yellow badge" in text
    found = retrieval.retrieve("What is the speed limit of forklifts?", text, 120, 120, count)
    assert len(found) == 1
    assert "6 km/h indoors" in found[0]


def count(text: str) -> int:
    return len(text.split())


@given(
    paragraphs=st.lists(st.lists(st.sampled_from(["a", "bb", "c" * 30]), max_size=30), max_size=9),
    most=st.integers(1, 40),
    measure=st.sampled_from([count, len]),
)
def test_passages_lose_nothing(
    paragraphs: list[list[str]], most: int, measure: Callable[[str], int]
) -> None:
    text = "\n\n".join(" ".join(each) for each in paragraphs)
    found = retrieval.split(text, most, measure)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(measure(each) <= most for each in found)


def test_rare_words_rank_first() -> None:
    passages = ["the cat", "the dog and the cat", "the dog", "no word of it"]
    # "dog" stands in two passages, and the shorter one is more about it.
    assert retrieval.ranking("dog", passages) == [2, 1]
    assert retrieval.ranking("horse", passages) == []
    # "and" stands in one, "cat" in two.
    assert retrieval.ranking("and cat", passages)[0] == 1
    assert retrieval.ranking("dog", []) == []


def test_passages_keep_to_their_tokens_and_their_order() -> None:
    text = "x one\n\nx x two\n\nx three\n\nfour"
    found = retrieval.retrieve("x", text, 2, 4, count)
    assert len(found) == 2
    assert found == sorted(found, key=text.index)
    assert sum(map(count, found)) <= 4


def test_an_answer_that_was_cut_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client("500")
    answer = client.create

    def cut(**request: Any) -> SimpleNamespace:
        found = answer(**request)
        found.choices[0].finish_reason = "length"
        return found

    client.chat.completions.create = cut
    made(client).ask("What is the penalty?")
    assert "was cut" in capsys.readouterr().err


def test_a_question_too_long_for_passages_goes_whole() -> None:
    client = Client("fine")
    made(client).ask("penalty " * 290)
    assert client.models() == ["long-docs"]


def test_a_refusal_is_told_with_its_reason() -> None:
    with pytest.raises(InfeasibleError, match="more than any instance reads"):
        made(Client(), "").ask("w " * 4000)
