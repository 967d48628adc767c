"""LiteLLM's proxy as it is rendered: who answers, by tokens, name, tag, and who is down."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from backend import Backend
from golden_plans import report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import MASTER_KEY, SERVERS_KEY, Answer, Router, servers, started, words_body

from vllm_advisor.routing import Router as Decider
from vllm_advisor.types.routing import RoutingPolicy

pytestmark = pytest.mark.routers
MARGIN = 0.02  # its own counter and its tokens around each message, against words
KEY = {"authorization": f"Bearer {MASTER_KEY}"}


@dataclass(frozen=True, kw_only=True)
class Proxy:
    router: Router
    policy: RoutingPolicy

    @property
    def chat(self) -> Backend:
        return self.router.backends["chat"][0]

    @property
    def long(self) -> Backend:
        return self.router.backends["long-docs"][0]

    def ask(
        self,
        words: int,
        *,
        model: str | None = None,
        tag: str | None = None,
        chunked: bool = False,
        **more: Any,
    ) -> Answer:
        body = words_body(words, model=model or self.policy.model, **more)
        headers = KEY | ({"x-litellm-tags": tag} if tag else {})
        return self.router.ask(body, headers=headers, chunked=chunked)

    def lands(self, words: int, **more: Any) -> str | None:
        """The server that answered."""
        answer = self.ask(words, **more)
        return answer.said_by if answer.status == 200 else None


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    policy = report("contract-review").plan.routing
    assert policy is not None
    folder = tmp_path_factory.mktemp("litellm")
    with started("litellm", policy, servers(), folder) as running:
        yield Proxy(router=running, policy=policy)


@pytest.mark.parametrize("words", [1, 100, 5900, 6300, 7100, 8000, 60_000, 118_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_the_length_decides(proxy: Proxy, words: int, chunked: bool) -> None:
    found = proxy.ask(words, chunked=chunked)
    expected = Decider(proxy.policy).decide(prompt_tokens=words)
    assert (found.status, found.said_by) == (200, expected.instance)
    assert found.headers["x-litellm-model-id"] == f"by-length:{expected.instance}-1"


def test_too_long_for_all_is_refused_clearly(proxy: Proxy) -> None:
    found = proxy.ask(130_000)
    assert found.status == 400
    assert "ContextWindowExceeded" in json.loads(found.body)["error"]["message"]


@pytest.mark.parametrize(
    ("name", "words", "lands"),
    [
        ("chat", 10, "chat"),
        ("chat", 20_000, "long-docs"),
        ("rag", 4300, "chat"),
        ("rag", 20_000, "long-docs"),
        ("long-docs", 10, "long-docs"),
        ("clause-lookup", 10, "chat"),
        ("contract-review", 10, "long-docs"),
    ],
)
def test_a_name_decides(proxy: Proxy, name: str, words: int, lands: str) -> None:
    assert proxy.lands(words, model=name) == lands


@pytest.mark.parametrize(
    ("tag", "words", "lands"),
    [
        ("chat", 10, "chat"),
        ("chat", 20_000, "long-docs"),
        ("rag", 10, "chat"),
        ("long-docs", 10, "long-docs"),
        ("long-docs", 20_000, "long-docs"),
    ],
)
def test_a_tag_decides(proxy: Proxy, tag: str, words: int, lands: str) -> None:
    assert proxy.lands(words, tag=tag) == lands


def test_vllms_own_refusal_is_followed_by_the_longer_instance(proxy: Proxy) -> None:
    """As where the proxy counts fewer tokens than vLLM: a server that reads less than it thinks."""
    before = len(proxy.chat.asked)
    planned, proxy.chat.max_model_len = proxy.chat.max_model_len, 3000
    try:
        assert proxy.lands(5000) == "long-docs"
    finally:
        proxy.chat.max_model_len = planned
    assert len(proxy.chat.asked) == before + 1


def test_an_answer_longer_than_the_short_instance_reads_comes_from_the_long_one(
    proxy: Proxy,
) -> None:
    """vLLM refuses max_tokens=8000 with other words; LiteLLM asks the next order all the same."""
    assert proxy.lands(10, max_tokens=8000) == "long-docs"


@pytest.mark.parametrize(("words", "lands"), [(100, "chat"), (8000, "long-docs")])
def test_completions_are_counted_too(proxy: Proxy, words: int, lands: str) -> None:
    before = len(proxy.chat.asked)
    body = json.dumps({"model": proxy.policy.model, "prompt": "word " * words}).encode()
    answer = proxy.router.ask(body, path="/v1/completions", headers=KEY)
    assert (answer.status, json.loads(answer.body)["choices"][0]["text"]) == (200, lands)
    assert len(proxy.chat.asked) == before + (lands == "chat")


@pytest.mark.parametrize("model", [None, "chat", "rag"])
def test_the_long_instance_stands_in(proxy: Proxy, model: str | None) -> None:
    with proxy.chat.stopped():
        for _ in range(3):
            assert proxy.lands(10, model=model) == "long-docs"
    proxy.router.until(lambda: proxy.lands(10, model=model) == "chat", seconds=60)  # its cooldown


def test_nobody_stands_in_for_the_long_instance(proxy: Proxy) -> None:
    with proxy.long.stopped():
        assert proxy.ask(20_000).status >= 400
        assert proxy.lands(10) == "chat"
    proxy.router.until(lambda: proxy.lands(20_000) == "long-docs", seconds=60)


def test_servers_get_their_own_key_and_clients_need_theirs(proxy: Proxy) -> None:
    proxy.ask(10)
    assert proxy.chat.asked[-1].headers["authorization"] == f"Bearer {SERVERS_KEY}"
    refused = proxy.router.ask(
        words_body(1, model=proxy.policy.model), headers={"authorization": "Bearer sk-other"}
    )
    assert refused.status in (400, 401, 403)


def test_answers_are_streamed(proxy: Proxy) -> None:
    client = http.client.HTTPConnection("127.0.0.1", proxy.router.port, timeout=60)
    body = words_body(1, model=proxy.policy.model, stream=True)
    headers = KEY | {"content-type": "application/json"}
    client.request("POST", "/v1/chat/completions", body=body, headers=headers)
    answer = client.getresponse()
    times = [time.monotonic() for line in answer if line.startswith(b"data: {")]
    client.close()
    assert len(times) > 2
    assert times[-1] - times[0] > 0.3, "the answer came in one piece"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.integers(1, 123_000))
def test_it_agrees_with_the_library_away_from_the_margin(proxy: Proxy, words: int) -> None:
    limits = [proxy.policy.route(name).max_prompt_tokens for name in proxy.policy.by_length]
    if any(abs(words - limit) <= limit * MARGIN for limit in limits):
        return
    assert proxy.lands(words) == Decider(proxy.policy).decide(prompt_tokens=words).instance
