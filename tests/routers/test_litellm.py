"""The real LiteLLM proxy with the rendered file as it is, before servers that refuse as vLLM does."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from backend import Backend
from golden_plans import report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vllm_advisor.routing import Router
from vllm_advisor.types.routing import RoutingPolicy

pytestmark = pytest.mark.routers
PLAN = "contract-review"
KEY = "sk-a-long-enough-master-key-2f8c1d"
MARGIN = 0.02  # its own counter and its tokens around each message, against words


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    body: dict[str, Any]
    deployment: str | None

    @property
    def landed(self) -> str | None:
        """The server that answered."""
        return self.body["choices"][0]["message"]["content"] if self.status == 200 else None


@dataclass(frozen=True, kw_only=True)
class Proxy:
    port: int
    policy: RoutingPolicy
    chat: Backend
    long: Backend

    def ask(
        self,
        words: int,
        *,
        model: str | None = None,
        tag: str | None = None,
        chunked: bool = False,
        **more: Any,
    ) -> Answer:
        body = {
            "model": model or self.policy.model,
            "messages": [{"role": "user", "content": "word " * words}],
            **more,
        }
        raw = json.dumps(body).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        if tag:
            headers["x-litellm-tags"] = tag
        data: Any = raw
        if chunked:
            data = iter([raw[:1000], raw[1000:]])
            headers["transfer-encoding"] = "chunked"
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions", data=data, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                return Answer(
                    status=got.status,
                    body=json.load(got),
                    deployment=got.headers.get("x-litellm-model-id"),
                )
        except urllib.error.HTTPError as error:
            with error:
                return Answer(status=error.code, body=json.loads(error.read()), deployment=None)


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    binary = shutil.which("litellm", path=str(Path(sys.executable).parent))
    if binary is None:
        pytest.skip("LiteLLM is not installed here (make test-routers installs it)")
    plan = report(PLAN).plan
    names = {
        i.name: tuple(i.engine_args.get("served_model_name")) for i in plan.deployment.instances
    }
    limits = {i.name: i.engine_args.get("max_model_len") for i in plan.deployment.instances}
    servers = {n: Backend(name=n, models=names[n], max_model_len=limits[n]) for n in names}
    for server in servers.values():
        server.start()
    folder, port = tmp_path_factory.mktemp("litellm"), free_port()
    urls = ", ".join(f"{name}: ['{server.url}']" for name, server in servers.items())
    made = report(PLAN, f"instance_urls={{{urls}}}", f"router_port={port}", "router_host=127.0.0.1")
    (artifact,) = made.target_files(("litellm",))
    (folder / "config.yaml").write_text(artifact.text)
    environment = {
        **{k: v for k, v in os.environ.items() if "proxy" not in k.lower()},
        "LITELLM_MASTER_KEY": KEY,
        "VLLM_API_KEY": "sk-servers",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [binary, "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
            yield Proxy(
                port=port, policy=plan.routing, chat=servers["chat"], long=servers["long-docs"]
            )
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for server in servers.values():
                server.stop()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"not ready after {seconds} s: {log.read_text()[-2000:]}")


@pytest.mark.parametrize("words", [1, 100, 5900, 6300, 7100, 8000, 60_000, 118_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_the_length_decides(proxy: Proxy, words: int, chunked: bool) -> None:
    found = proxy.ask(words, chunked=chunked)
    expected = Router(proxy.policy).decide(prompt_tokens=words)
    assert found.landed == expected.instance
    assert found.deployment == f"by-length:{expected.instance}-1"


def test_too_long_for_all_is_refused_clearly(proxy: Proxy) -> None:
    found = proxy.ask(130_000)
    assert found.status == 400
    assert "ContextWindowExceeded" in found.body["error"]["message"]


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
    assert proxy.ask(words, model=name).landed == lands


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
    assert proxy.ask(words, tag=tag).landed == lands


def test_vllms_own_refusal_is_followed_by_the_longer_instance(proxy: Proxy) -> None:
    """5,000 and 3,000 are more than 7,168: the proxy counts 5,000, vLLM refuses."""
    before = len(proxy.chat.asked)
    found = proxy.ask(5000, max_tokens=3000)
    assert found.landed == "long-docs"
    assert len(proxy.chat.asked) == before + 1


@pytest.mark.parametrize("model", [None, "chat", "rag"])
def test_the_long_instance_stands_in(proxy: Proxy, model: str | None) -> None:
    with proxy.chat.stopped():
        for _ in range(3):
            assert proxy.ask(10, model=model).landed == "long-docs"
    end = time.monotonic() + 60  # LiteLLM asks again after its cooldown
    while proxy.ask(10, model=model).landed != "chat":
        assert time.monotonic() < end
        time.sleep(1)


def test_nobody_stands_in_for_the_long_instance(proxy: Proxy) -> None:
    with proxy.long.stopped():
        assert proxy.ask(20_000).status >= 400
        assert proxy.ask(10).landed == "chat"


def test_servers_get_their_own_key_and_nobody_else_does(proxy: Proxy) -> None:
    proxy.ask(10)
    assert proxy.chat.asked[-1].headers["authorization"] == "Bearer sk-servers"
    request = urllib.request.Request(
        f"http://127.0.0.1:{proxy.port}/v1/models", headers={"authorization": "Bearer sk-other"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    with refused.value:
        assert refused.value.code in (400, 401, 403)


def test_answers_are_streamed(proxy: Proxy) -> None:
    body = {
        "model": proxy.policy.model,
        "messages": [{"role": "user", "content": "word"}],
        "stream": True,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{proxy.port}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=60) as got:
        times = [time.monotonic() for line in got if line.startswith(b"data: {")]
    assert len(times) > 2
    assert times[-1] - times[0] > 0.3, "the answer came in one piece"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.integers(1, 123_000))
def test_it_agrees_with_the_library_away_from_the_margin(proxy: Proxy, words: int) -> None:
    for limit in (6168, 120_880):
        if abs(words - limit) <= limit * MARGIN:
            return
    found = proxy.ask(words)
    assert found.landed == Router(proxy.policy).decide(prompt_tokens=words).instance
