"""Envoy and nginx as they are rendered: who answers, by length, header, and who is down."""

from __future__ import annotations

import dataclasses
import http.client
import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from backend import FORGED, PAUSE, PIECES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policies import CHAT, CONTRACTS, LONG, RAG
from running import (
    CHECKS,
    Answer,
    Router,
    chat_body,
    rendered,
    servers,
    started,
    words,
    words_body,
)

from vllm_advisor.render.byte_rules import ladders
from vllm_advisor.routing.router import Router as Decider

pytestmark = pytest.mark.routers

TARGETS = ("envoy", "nginx")
MODEL = CONTRACTS.model
LIMIT = CHAT.max_prompt_bytes  # 18,504
BODY_LIMIT = CONTRACTS.byte_count.body_limit_bytes
SIZES = (100, 3000, LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 1000, 99_999, 100_000, 1_000_000)


@pytest.fixture(scope="module", params=TARGETS)
def router(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Router]:
    folder = tmp_path_factory.mktemp(request.param)
    with started(request.param, CONTRACTS, servers(), folder) as running:
        yield running


def expected(size: int, workload: str | None = None) -> str:
    """Who answers by the rules: the first instance of the step."""
    first, *others = ladders(CONTRACTS)
    ladder = next((each for each in others if workload in each.routes), first)
    return ladder.step(size).instances[0]


def assert_from(answer: Answer, instance: str) -> None:
    assert (answer.status, answer.instance, answer.said_by) == (200, instance, instance)


@pytest.mark.parametrize("target", TARGETS)
def test_the_real_program_accepts_the_file(target: str, tmp_path: Path) -> None:
    urls = {"chat": ["http://127.0.0.1:1", "http://[::1]:2"], "long-docs": ["http://localhost:3"]}
    file = rendered(target, CONTRACTS, urls, 4000, tmp_path)
    done = subprocess.run(
        words(target, CHECKS[target], file), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_thresholds_by_hand() -> None:
    assert [expected(size) for size in (0, 18_504, 18_505)] == ["chat", "chat", "long-docs"]
    assert expected(1, "rag") == "chat"
    assert expected(1, "long-docs") == "long-docs"


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("workload", [None, "chat", "rag", "long-docs", "other", "CHAT"])
def test_every_length_lands_where_the_rules_say(
    router: Router, workload: str | None, chunked: bool
) -> None:
    headers = {"x-workload": workload} if workload else {}
    for size in SIZES:
        answer = router.ask(chat_body(size, model=MODEL), headers=headers, chunked=chunked)
        assert_from(answer, expected(size, workload))


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("size", [100, LIMIT, LIMIT + 1, 500_000])
def test_http2_too(router: Router, size: int, told: bool) -> None:
    """With prior knowledge; without a Content-Length, too."""
    pytest.importorskip("h2", reason="no client for HTTP/2: install httpx[http2]")
    httpx = pytest.importorskip("httpx")
    body = chat_body(size, model=MODEL)
    content = body if told else (piece for piece in (body[:50], body[50:]))
    with httpx.Client(http1=False, http2=True, timeout=30, trust_env=False) as client:
        answer = client.post(
            f"http://127.0.0.1:{router.port}/v1/chat/completions",
            content=content,
            headers={"content-type": "application/json"},
        )
        assert answer.http_version == "HTTP/2"
        assert answer.headers["x-vllm-instance"] == expected(size)
        assert answer.json()["choices"][0]["message"]["content"] == expected(size)


@pytest.mark.parametrize("size", [BODY_LIMIT, BODY_LIMIT + 1])
def test_http2_has_the_same_limit(router: Router, size: int) -> None:
    """The length is not told: told one, nginx refuses at once, and this client still sends."""
    pytest.importorskip("h2", reason="no client for HTTP/2: install httpx[http2]")
    httpx = pytest.importorskip("httpx")
    body = chat_body(size, model=MODEL)
    with httpx.Client(http1=False, http2=True, timeout=30, trust_env=False) as client:
        answer = client.post(
            f"http://127.0.0.1:{router.port}/v1/chat/completions",
            content=(piece for piece in (body[:50], body[50:])),
        )
    assert answer.status_code == (200 if size == BODY_LIMIT else 413)
    assert "temporary file" not in router.log.read_text(), "prompts stay in memory"


@given(
    size=st.integers(100, 60_000),
    workload=st.sampled_from([None, "chat", "rag", "long-docs"]),
    chunked=st.booleans(),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_agrees_with_the_router_for_applications(
    router: Router, size: int, workload: str | None, chunked: bool
) -> None:
    """Wherever bytes and tokens say the same: outside of the margin around a limit.

    A token takes 3 to 5 bytes (4, 25 % more or less): where both ends of that lead to the same
    instance, so do the bytes.
    """
    decider = Decider(dataclasses.replace(CONTRACTS, retrieval=None))
    few, many = (
        decider.decide(prompt_tokens=tokens, route=workload).instance
        for tokens in (size // 5, -(-size // 3))
    )
    answer = router.ask(
        chat_body(size, model=MODEL),
        headers={"x-workload": workload} if workload else {},
        chunked=chunked,
    )
    assert answer.instance == answer.said_by
    assert answer.instance in (few, many)
    if few == many:
        assert answer.instance == few


@pytest.mark.parametrize("chunked", [False, True])
def test_a_prompt_that_is_too_long_after_all_goes_on(router: Router, chunked: bool) -> None:
    """7,200 words of 2 bytes are 14.4 kB: chat takes so many bytes, but 7,168 tokens only."""
    body = words_body(7200, model=MODEL)
    assert len(body) < LIMIT
    seen = {name: len(each[0].asked) for name, each in router.backends.items()}
    assert_from(router.ask(body, chunked=chunked), "long-docs")
    assert {name: len(each[0].asked) - seen[name] for name, each in router.backends.items()} == {
        "chat": 1,
        "long-docs": 1,
    }
    assert [each[0].asked[-1].body for each in router.backends.values()] == [body, body]


def test_what_both_refuse_is_refused_in_vllms_words(router: Router) -> None:
    asked = len(router.backends["chat"][0].asked)
    answer = router.ask(words_body(10, model=MODEL, max_tokens=LONG.max_model_len + 1))
    assert answer.status == 400
    said = json.loads(answer.body)["error"]["message"]
    assert "max_tokens=122881 cannot be greater than max_model_len=122880" in said
    assert len(router.backends["chat"][0].asked) == asked + 1
    too_long = router.ask(words_body(130_000, model=MODEL))
    assert (too_long.status, too_long.instance) == (400, "long-docs")
    assert "your request has 130000 input tokens" in json.loads(too_long.body)["error"]["message"]


def test_a_name_that_nobody_serves_is_told_once(router: Router) -> None:
    before = sum(len(each[0].asked) for each in router.backends.values())
    answer = router.ask(words_body(10, model="other"))
    assert (answer.status, answer.instance) == (404, "chat")
    assert sum(len(each[0].asked) for each in router.backends.values()) == before + 1


@pytest.mark.parametrize("size", [200, LIMIT + 1])
def test_a_stream_arrives_piece_by_piece(router: Router, size: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", router.port, timeout=30)
    client.request("POST", "/v1/chat/completions", body=chat_body(size, model=MODEL, stream=True))
    response = client.getresponse()
    assert response.getheader("x-vllm-instance") == expected(size)
    assert str(response.getheader("content-type")).startswith("text/event-stream")
    times = []
    while line := response.readline():
        if line.startswith(b"data: "):
            times.append(time.monotonic())
    client.close()
    assert len(times) == PIECES + 1
    # All at once at the end would be no time at all; half of the pauses is allowed to be lost.
    assert times[-1] - times[0] > PAUSE * PIECES / 2
    assert max(later - one for one, later in pairwise(times)) < PAUSE * PIECES


def test_a_client_that_leaves_ends_its_request(router: Router) -> None:
    """Or vLLM would go on to write what nobody reads."""
    (chat,) = router.backends["chat"]
    before = chat.abandoned
    client = http.client.HTTPConnection("127.0.0.1", router.port, timeout=30)
    client.request("POST", "/v1/chat/completions", body=chat_body(200, model=MODEL, stream=True))
    response = client.getresponse()
    assert response.readline().startswith(b"data: ")
    response.close()
    client.close()
    router.until(lambda: chat.abandoned == before + 1)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_refused(router: Router, chunked: bool) -> None:
    fits = router.ask(chat_body(BODY_LIMIT, model=MODEL), chunked=chunked)
    assert_from(fits, "long-docs")
    before = len(router.backends["long-docs"][0].asked)
    answer = router.ask(chat_body(BODY_LIMIT + 1, model=MODEL), chunked=chunked)
    assert answer.status == 413
    assert json.loads(answer.body)["error"]["code"] == 413
    assert len(router.backends["long-docs"][0].asked) == before


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics",
        "/tokenize",
        "/invocations",
        "/v1",
        "/v2/models",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/x/../../metrics",
        "//metrics",
        "/read-body",
        "/health/..",
    ],
)
def test_other_paths_are_not_passed_on(router: Router, path: str, method: str) -> None:
    before = sum(len(each[0].asked) for each in router.backends.values())
    answer = router.ask(b"{}" if method == "POST" else None, method=method, path=path)
    assert answer.status == 404, answer
    assert json.loads(answer.body)["error"]["code"] == 404
    assert sum(len(each[0].asked) for each in router.backends.values()) == before


def test_other_requests_under_v1_are_passed_on(router: Router) -> None:
    models = router.ask(method="GET", path="/v1/models?x=1")
    assert (models.status, models.instance) == (200, "chat")
    assert MODEL in models.body.decode()
    assert router.backends["chat"][0].asked[-1].path == "/v1/models?x=1"
    for method, path in (("POST", "/v1/"), ("GET", "/v1/"), ("GET", "/v1/nothing")):
        assert (router.ask(b"{}", method=method, path=path).instance) == "chat"


def test_the_routers_own_health(router: Router) -> None:
    before = [len(each[0].asked) for each in router.backends.values()]
    answer = router.ask(method="GET", path="/health")
    assert (answer.status, answer.instance) == (200, None)
    assert [len(each[0].asked) for each in router.backends.values()] == before


def test_headers_go_through_and_forged_ones_do_not(router: Router) -> None:
    answer = router.ask(
        chat_body(200, model=MODEL),
        headers={
            "x-request-id": "abc-123",
            "authorization": "Bearer key",
            "x-vllm-body-bytes": "999999",
            "x-vllm-instance": "long-docs",
            "x-envoy-max-retries": "9",
            "x-envoy-upstream-rq-timeout-ms": "1",
        },
    )
    assert_from(answer, "chat")
    assert FORGED not in answer.headers.values()
    assert answer.headers["x-request-id"] == "abc-123"
    arrived = router.backends["chat"][0].asked[-1].headers
    assert arrived["x-request-id"] == "abc-123"
    assert arrived["authorization"] == "Bearer key"
    if router.target == "envoy":  # nginx has no such header, and passes on what it does not know
        assert "x-vllm-body-bytes" not in arrived
        assert not {name for name in arrived if name.startswith("x-envoy-") and "max" in name}
    forged = router.ask(chat_body(50_000, model=MODEL), headers={"x-vllm-body-bytes": "1"})
    assert_from(forged, "long-docs")
    wrong = router.ask(chat_body(200, model=MODEL), headers={"x-workload": "chat, long-docs"})
    assert_from(wrong, "chat")


@pytest.mark.parametrize("target", TARGETS)
def test_the_long_instance_stands_in_and_the_short_one_comes_back(
    target: str, tmp_path: Path
) -> None:
    short = chat_body(200, model=MODEL)
    with started(target, CONTRACTS, servers(), tmp_path) as router:
        (chat,), (long,) = router.backends.values()
        assert_from(router.ask(short), "chat")
        with chat.stopped():
            for chunked in (False, True) * 10:  # none is lost, the first ones included
                assert_from(router.ask(short, chunked=chunked), "long-docs")
            assert_from(router.ask(words_body(7200, model=MODEL)), "long-docs")
            time.sleep(16)  # the health check has seen it
            assert_from(router.ask(short), "long-docs")
            long.stop()
            answer = router.ask(short)
            assert answer.status == 503
            assert json.loads(answer.body)["error"]["code"] == 503
            assert answer.instance in (None, "none")
            long.start()
            router.until(lambda: router.ask(short).status == 200)
            assert_from(router.ask(short), "long-docs")
        router.until(lambda: router.ask(short).instance == "chat")
        long.stop()
        assert router.ask(chat_body(50_000, model=MODEL)).status == 503, "nobody else reads it"
        assert_from(router.ask(short), "chat")
        # It refuses what is too long for it, and who would read it is down.
        assert router.ask(words_body(7200, model=MODEL)).status in (400, 503)


@pytest.mark.parametrize("target", TARGETS)
def test_replicas_share_the_load_and_one_that_is_down_is_left_out(
    target: str, tmp_path: Path
) -> None:
    backends = servers(chat=3)
    for one in backends["chat"]:
        one.delay = 0.02
    with started(target, CONTRACTS, backends, tmp_path) as router:
        shares = asked_together(router, 60)
        assert set(shares) == {"chat-0", "chat-1", "chat-2"}
        assert min(shares.values()) >= 8, shares  # 20 each, if it were exact
        with backends["chat"][1].stopped():
            first = asked_together(router, 12)
            assert set(first) <= {"chat-0", "chat-2", "long-docs"}
            time.sleep(1)
            # Two of three are enough: nothing goes to the stand-in that does not have to.
            shares = asked_together(router, 30)
            assert shares["chat-0"] + shares["chat-2"] >= 25, shares
        router.until(lambda: "chat-1" in asked_together(router, 6))


def asked_together(router: Router, count: int) -> Counter[str]:
    """Who answered so many short requests, six at a time; none may be lost."""
    found: list[Answer] = []

    def ask(each: int) -> None:
        found.extend(router.ask(chat_body(200, model=MODEL)) for _ in range(each))

    clients = [threading.Thread(target=ask, args=(count // 6,)) for _ in range(6)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert len(found) == count
    assert {answer.status for answer in found} == {200}
    assert {answer.said_by.split("-")[0] for answer in found} == {
        str(answer.instance).split("-")[0] for answer in found
    }
    return Counter(answer.said_by for answer in found)


@pytest.mark.parametrize("target", TARGETS)
def test_a_request_on_which_a_server_dies_is_not_sent_to_the_next(
    target: str, tmp_path: Path
) -> None:
    """What killed one could kill the other as well."""
    backends = servers()
    (chat,) = backends["chat"]
    with started(target, CONTRACTS, backends, tmp_path) as router:
        chat.delay = 2
        ended = threading.Timer(0.5, chat.stop)
        ended.start()
        answer = router.ask(chat_body(200, model=MODEL))
        ended.join()
        assert answer.status in (502, 503)
        assert backends["long-docs"][0].asked == []


@pytest.mark.parametrize("target", TARGETS)
def test_three_lengths_and_a_route_that_nobody_follows(target: str, tmp_path: Path) -> None:
    """rag of its own limit between the two, on the long instance; chat asked by name stays there."""
    middle = dataclasses.replace(RAG, instance="long-docs", max_prompt_bytes=40_000, on_outage=None)
    policy = dataclasses.replace(
        CONTRACTS,
        routes=(dataclasses.replace(CHAT, on_overflow=None), middle, LONG),
    )
    with started(target, policy, servers(), tmp_path) as router:
        for size, workload, instance in (
            (LIMIT, None, "chat"),
            (LIMIT + 1, None, "long-docs"),
            (200, "rag", "long-docs"),
            (40_001, "rag", "long-docs"),
            (LIMIT + 1, "chat", "chat"),
        ):
            headers = {"x-workload": workload} if workload else {}
            assert_from(router.ask(chat_body(size, model=MODEL), headers=headers), instance)
        refused = router.ask(words_body(7200, model=MODEL), headers={"x-workload": "chat"})
        assert (refused.status, refused.instance) == (400, "chat"), "by name, so nobody else's"
