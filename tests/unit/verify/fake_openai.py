"""An OpenAI server on loopback whose model really reads what it is sent; one word is one token."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEMPLATE_TOKENS = 5  # of the chat template, on top of the words
CODE = re.compile(r"[A-Z]{4}-\d{4}")


def words(text: str) -> int:
    return len(text.split())


def finds(prompt: str) -> str:
    """A model that reads everything."""
    found = CODE.findall(prompt)
    return f"It is {found[0]}." if found else "The document does not say."


def forgets_the_middle(prompt: str) -> str:
    """A model that sees the first and the last third only."""
    third = len(prompt) // 3
    return finds(prompt[:third] + " ... " + prompt[-third:])


@dataclass(kw_only=True)
class Fake:
    """How the server behaves, and what it was asked."""

    name: str = "tiny"
    max_model_len: int | None = 4000
    model: Callable[[str], str] = finds
    tokenize: bool = True
    usage: bool = True
    key: str | None = None
    models: list[dict[str, Any]] | None = None
    reply: Callable[[dict[str, Any], dict[str, str]], tuple[int, Any, dict[str, str]] | None] = (
        lambda _asked, _headers: None
    )  # what to say instead: status, body, headers
    hang_up_at: int | None = None  # this chat request, counted from 1, ends without an answer
    wait: float = 0.0
    metrics: str = ""
    chats: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)  # of the chat requests
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""

    def listed(self) -> list[dict[str, Any]]:
        if self.models is not None:
            return self.models
        return [{"id": self.name, "object": "model", "max_model_len": self.max_model_len}]

    def chat(self, asked: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any, dict]:
        said = self.reply(asked, headers)
        if said is not None:
            return said
        if asked["model"] != self.name:
            return 404, error(f"The model `{asked['model']}` does not exist."), {}
        prompt = asked["messages"][0]["content"]
        tokens = words(prompt) + TEMPLATE_TOKENS
        limit = self.max_model_len
        if limit is not None and tokens + asked["max_tokens"] > limit:
            return 400, error(
                f"This model's maximum context length is {limit} tokens. However, your prompt "
                f"contains {tokens} input tokens. Please reduce the length of the input prompt."
            ), {}  # fmt: skip
        return 200, completion(self.model(prompt), tokens if self.usage else None), {}


def error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}


def completion(text: str | None, tokens: int | None, **message: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": "stop",
            }
        ]
    }
    if tokens is not None:
        made["usage"] = {"prompt_tokens": tokens, "completion_tokens": 8}
    return made


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    """The server while the block runs; ``fake.url`` is its root."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._noted()
            if self.path == "/metrics":
                self._say(200, fake.metrics)
            elif not self._may():
                self._say(401, {"error": "Unauthorized"})
            elif self.path == "/v1/models":
                self._say(200, {"object": "list", "data": fake.listed()})
            else:
                self._say(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            self._noted()
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/tokenize" and fake.tokenize:
                text = asked["messages"][0]["content"]
                self._say(200, {"count": words(text) + TEMPLATE_TOKENS, "tokens": []})
            elif self.path != "/v1/chat/completions":
                self._say(404, {"detail": "Not Found"})
            elif not self._may():
                self._say(401, {"error": "Unauthorized"})
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                fake.chats.append(asked)
                fake.headers.append(headers)
                time.sleep(fake.wait)
                if len(fake.chats) == fake.hang_up_at:
                    self.close_connection = True
                    return
                self._say(*fake.chat(asked, headers))

        def _noted(self) -> None:
            fake.paths.append(self.path)
            fake.keys.append(self.headers.get("Authorization"))

        def _may(self) -> bool:
            return fake.key is None or self.headers.get("Authorization") == f"Bearer {fake.key}"

        def _say(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            raw = body if isinstance(body, bytes) else None
            if raw is None:
                raw = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if "Content-Length" not in (headers or {}):
                self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:  # a client that went away
            pass

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
