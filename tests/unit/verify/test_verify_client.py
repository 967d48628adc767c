"""The client against a server on this machine: what it sends, and how refusals are told."""

from __future__ import annotations

import socket
import threading

import pytest
from fake_openai import Fake, completion, error, serving

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.verify import transport
from vllm_advisor.verify.address import api_key, base_url, extra_headers
from vllm_advisor.verify.client import OpenAIClient, RefusedError

KEY = "sk-very-secret"
SVG = "{http://www.w3.org/2000/svg}"


def client(fake: Fake, **more) -> OpenAIClient:
    return OpenAIClient(base=f"{fake.url}/v1", timeout=more.pop("timeout", 5), **more)


def saying(status, body, headers=None) -> Fake:
    return Fake(reply=lambda _asked, _headers: (status, body, headers or {}))


def test_an_answer_and_what_was_sent():
    with serving(Fake(key=KEY)) as fake:
        answer = client(fake, key=KEY, headers={"x-team": "a"}).chat(
            "tiny", "one two ABCD-1234", max_tokens=7, headers={"x-workload": "rag"}
        )
    assert answer.content == "It is ABCD-1234."
    assert answer.prompt_tokens == 3 + 5  # three words and the template
    assert answer.finish_reason == "stop"
    assert fake.chats == [
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "one two ABCD-1234"}],
            "max_tokens": 7,
            "temperature": 0,
        }
    ]
    assert fake.headers[0]["x-team"] == "a"
    assert fake.headers[0]["x-workload"] == "rag"
    assert fake.keys == [f"Bearer {KEY}"]


def test_a_header_given_by_hand_wins_over_a_key_of_the_environment():
    with serving(Fake(key="mine")) as fake:
        client(fake, key=KEY, headers={"authorization": "Bearer mine"}).models()
    assert fake.keys == ["Bearer mine"]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_stands_apart(field):
    with serving(saying(200, completion(None, 9, **{field: "hm"}))) as fake:
        answer = client(fake).chat("tiny", "x", max_tokens=1)
    assert (answer.content, answer.reasoning, answer.prompt_tokens) == ("", "hm", 9)


@pytest.mark.parametrize(
    "body",
    [
        "<html>Welcome</html>",
        "",
        "[]",
        {"choices": []},
        {"choices": [{"message": "text"}]},
        {"choices": [{"message": {"content": [1]}}]},
        b"\xff\xfe\x1b[31mred",
        "[" * 100_000,
    ],
)
def test_what_is_no_completion_is_said(body):
    with serving(saying(200, body)) as fake, pytest.raises(UnknownFactError) as caught:
        client(fake).chat("tiny", "x", max_tokens=1)
    assert "no chat completion" in caught.value.what
    assert caught.value.where.endswith("/v1/chat/completions")
    assert caught.value.what.isprintable()


@pytest.mark.parametrize(
    ("status", "body", "words", "meaning"),
    [
        (401, {"error": "Unauthorized"}, "Unauthorized", "wants an API key"),
        (403, {"detail": "no"}, "no", "wants an API key"),
        (404, error("The model `x` does not exist."), "The model `x` does not exist.", "not know"),
        (429, {"message": "slow down"}, "slow down", "too many requests"),
        (503, "no healthy upstream", "no healthy upstream", "failed"),
        (400, {"error": {"code": 1}}, '{"error": {"code": 1}}', "refuses the request"),
        (500, "\x1b[2Jgone\r\n", r"\x1b[2Jgone", "failed"),
    ],
)
def test_refusals_have_a_meaning_and_the_servers_words(status, body, words, meaning):
    with serving(saying(status, body)) as fake, pytest.raises(RefusedError) as caught:
        client(fake).chat("tiny", "x", max_tokens=1)
    assert caught.value.words == words
    assert meaning in caught.value.what
    assert f"HTTP {status}" in caught.value.what
    assert caught.value.fix
    assert not caught.value.too_long


@pytest.mark.parametrize(
    ("status", "words", "too_long"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, ...", True),
        (400, "litellm.ContextWindowExceededError: ...", True),
        (413, "", True),
        (400, "no chat template", False),
        (500, "maximum context length", False),
    ],
)
def test_too_long_is_told_from_other_refusals(status, words, too_long):
    with serving(saying(status, error(words))) as fake, pytest.raises(RefusedError) as caught:
        client(fake).chat("tiny", "x", max_tokens=1)
    assert caught.value.too_long is too_long


def test_a_key_is_never_repeated():
    with serving(saying(401, error(f"Incorrect API key: {KEY}"))) as fake:
        one = client(fake, key=KEY)
        with pytest.raises(RefusedError) as caught:
            one.chat("tiny", "x", max_tokens=1)
    assert caught.value.what.endswith("Incorrect API key: ***")
    assert "refuses this API key" in caught.value.what
    assert KEY not in repr(one)
    with serving(saying(200, f"you sent Bearer {KEY}")) as fake:
        with pytest.raises(UnknownFactError) as caught:
            client(fake, key=KEY).chat("tiny", "x", max_tokens=1)
        assert KEY not in caught.value.what


def test_redirects_are_told_and_not_followed():
    with serving(Fake()) as other:
        place = f"{other.url}/v1/chat/completions"
        with (
            serving(saying(307, "", {"Location": place})) as fake,
            pytest.raises(RefusedError) as caught,
        ):
            client(fake, key=KEY).chat("tiny", "x", max_tokens=1)
    assert f"sends requests on to {place}" in caught.value.what
    assert caught.value.fix == "give that address as --base-url"
    assert other.paths == []


def test_models_and_adapters():
    rows = [
        {"id": "base", "max_model_len": 8192},
        {"id": "adapter", "parent": "base", "max_model_len": None},
        {"id": "other", "max_model_len": True},
        {"object": "nonsense"},
        "nonsense",
    ]
    with serving(Fake(models=rows)) as fake:
        found = client(fake).models()
    assert [(m.name, m.max_model_len) for m in found] == [
        ("base", 8192), ("adapter", 8192), ("other", None),
    ]  # fmt: skip


def test_tokens_are_counted_at_the_root_with_the_chat_template():
    with serving(Fake()) as fake:
        assert client(fake).count_tokens("tiny", "one two three") == 3 + 5
    assert fake.paths == ["/tokenize"]
    with serving(Fake(tokenize=False)) as fake:
        assert client(fake).count_tokens("tiny", "one two three") is None


def test_slow_servers_and_lost_connections():
    with serving(Fake(wait=1.0)) as fake, pytest.raises(UnknownFactError) as caught:
        client(fake, timeout=0.2).chat("tiny", "x", max_tokens=1)
    assert "no answer within 0.2 s" in caught.value.what
    assert "--timeout" in caught.value.fix
    with serving(Fake(hang_up_at=1)) as fake, pytest.raises(UnknownFactError) as caught:
        client(fake).chat("tiny", "x", max_tokens=1)
    assert "connection was lost" in caught.value.what


def test_an_answer_that_is_cut_off_or_endless(monkeypatch):
    with (
        serving(saying(200, "{}", {"Content-Length": "100"})) as fake,
        pytest.raises(UnknownFactError, match="cut off"),
    ):
        client(fake).chat("tiny", "x", max_tokens=1)
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 10_000)
    with (
        serving(saying(200, "x" * 20_000)) as fake,
        pytest.raises(UnknownFactError, match="larger than"),
    ):
        client(fake).chat("tiny", "x", max_tokens=1)


def test_an_answer_that_drips():
    """A byte now and then keeps each wait short; the whole still has its time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                try:
                    while not stop.wait(0.02):
                        connection.sendall(b" " * 4096)
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            with pytest.raises(UnknownFactError, match=r"no answer within 0\.3 s"):
                OpenAIClient(base=address, timeout=0.3).chat("tiny", "x", max_tokens=1)
        finally:
            stop.set()
            thread.join()


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(UnknownFactError) as caught:
        OpenAIClient(base=f"http://127.0.0.1:{port}/v1", timeout=5).models()
    assert "cannot reach the server" in caught.value.what
    assert caught.value.exit_code == 3


def test_base_urls():
    assert base_url("http://h:8000") == "http://h:8000/v1"
    assert base_url("http://h:8000/") == "http://h:8000/v1"
    assert base_url("https://h/v1/") == "https://h/v1"
    assert base_url("https://h/team/v1") == "https://h/team/v1"
    assert OpenAIClient(base="https://h/team/v1", timeout=1).root == "https://h/team"
    assert OpenAIClient(base="https://h/api", timeout=1).root == "https://h/api"


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8000", "ftp://h", "http://", "", "http://h:0", "http://h:99999", "http://[::1",
        "http://h/v1?key=1", "http://h/#x", "http://h/ü", "http://h/a b", "http://user:pw@h/v1",
    ],
)  # fmt: skip
def test_what_is_no_base_url(text):
    with pytest.raises(InputError) as caught:
        base_url(text)
    assert caught.value.fix
    assert "pw" not in caught.value.what


def test_keys_come_from_the_environment(monkeypatch):
    assert api_key(None) is None
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    assert api_key(None) == "second"
    monkeypatch.setenv("VLLM_API_KEY", " first\n")
    assert api_key(None) == "first"
    monkeypatch.setenv("MINE", "third")
    assert api_key("MINE") == "third"
    with pytest.raises(InputError, match="ABSENT is not set"):
        api_key("ABSENT")
    monkeypatch.setenv("MINE", "schlüssel")
    with pytest.raises(InputError) as caught:
        api_key("MINE")
    assert "schl" not in str(caught.value)


def test_headers():
    assert extra_headers(["X-Team=a=b", "x-none="]) == {"x-team": "a=b", "x-none": ""}
    for word in ("no-value", "a b=c", "=x", "x=a\r\nHost: evil", "x=ü"):
        with pytest.raises(InputError) as caught:
            extra_headers([word])
        assert "evil" not in str(caught.value)
