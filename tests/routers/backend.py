"""A server that answers as vLLM does, as far as a router can tell; words are its tokens."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FORGED = "forged-by-the-backend"  # what it says under the router's own header
PIECES = 5  # of an answer that is streamed
PAUSE = 0.15  # seconds between them


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass(eq=False, kw_only=True)
class Backend:
    """One server; it can be stopped, which ends its connections too, and started again."""

    name: str
    models: tuple[str, ...]
    max_model_len: int = 10**9
    delay: float = 0.0  # seconds before it answers
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    abandoned: int = 0  # streams whose client went away
    _server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Seen]:
        """What it was asked by clients, not by health checks."""
        return [one for one in self.seen if one.path != "/health"]

    def start(self) -> None:
        assert self._server is None
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.backend = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()
            server.hang_up()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Nothing listens on its port for a while."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def refusal(self, body: dict[str, Any]) -> tuple[int, str] | None:
        """Status and text with which vLLM would refuse a request."""
        if body.get("model") not in self.models:
            return 404, f"The model `{body.get('model')}` does not exist."
        words = count_words(body)
        # vLLM 0.32 and 0.33 (renderers/params.py, get_max_tokens): an answer that does not fit
        # beside the prompt is cut off, not refused.
        asked = body.get("max_tokens") or 0
        if asked > self.max_model_len:
            return 400, (
                f"max_tokens={asked} cannot be greater than max_model_len={self.max_model_len}. "
                "Please request fewer output tokens."
            )
        if words > self.max_model_len:
            return 400, (
                f"This model's maximum context length is {self.max_model_len} tokens. However, "
                f"your request has {words} input tokens. Please reduce the length of the input "
                "messages."
            )
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    backend: Backend

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error; everything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


def count_words(body: dict[str, Any]) -> int:
    """Words of the prompt, or of what all messages say."""
    if "messages" not in body:
        return len(str(body.get("prompt", "")).split())
    return sum(
        len(part["text"].split())
        for message in body["messages"]
        for part in _parts(message["content"])
        if part.get("type") == "text"
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        backend = self._note(b"")
        path = self.path.partition("?")[0]
        if path == "/health":
            self._send(200, b"")
        elif path == "/metrics":
            self._send(200, b"vllm:num_requests_running 0\n", "text/plain")
        elif path == "/v1/models":
            self._json(200, {"object": "list", "data": [{"id": name} for name in backend.models]})
        else:
            self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        backend = self._note(raw := self._body())
        time.sleep(backend.delay)
        if self.path not in ("/v1/chat/completions", "/v1/completions", "/tokenize"):
            self._json(404, {"detail": "Not Found"})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self._refuse(400, "There was an error parsing the body")
            return
        if self.path == "/tokenize":
            self._json(200, {"count": count_words(body), "max_model_len": backend.max_model_len})
        elif refusal := backend.refusal(body):
            self._refuse(*refusal)
        elif body.get("stream"):
            self._stream(body["model"])
        else:
            usage = {"prompt_tokens": count_words(body)}
            content = {"role": "assistant", "content": backend.name}
            said = {"text": backend.name} if "prompt" in body else {"message": content}
            choice = {"index": 0, "finish_reason": "stop", **said}
            self._json(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def _note(self, body: bytes) -> Backend:
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(method=self.command, path=self.path, headers=headers, body=body)
        self.server.backend.seen.append(seen)
        return self.server.backend

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass
        return found

    def _refuse(self, status: int, message: str) -> None:
        kind = "NotFoundError" if status == 404 else "BadRequestError"
        self._json(status, {"error": {"message": message, "type": kind, "code": status}})

    def _json(self, status: int, body: Any) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self._head(status, kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("x-vllm-instance", FORGED)
        if "x-request-id" in self.headers:
            self.send_header("x-request-id", self.headers["x-request-id"])

    def _stream(self, model: str) -> None:
        self._head(200, "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self._pieces(model)
        except ConnectionError:
            self.server.backend.abandoned += 1
            raise

    def _pieces(self, model: str) -> None:
        for number in range(PIECES):
            delta = {"content": f"{self.server.backend.name} {number}"}
            self._event(json.dumps({"model": model, "choices": [{"index": 0, "delta": delta}]}))
            time.sleep(PAUSE)
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
