"""A small client of the OpenAI API, with what vLLM adds to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.verify.transport import Reply, printable, request

_WORDS = 600  # characters of a refusal that are told
# vLLM: "This model's maximum context length is N tokens"; LiteLLM: ContextWindowExceededError.
_TOO_LONG = ("context length", "contextwindowexceeded", "context window", "max_model_len")

_NO_MODEL = ("invalid model name", "model_not_found", "does not exist")  # LiteLLM says so with 400


class RefusedError(UnknownFactError):
    """The server answered with an HTTP status that is no success, and perhaps with words."""

    def __init__(self, reply: Reply, *, url: str, key: str | None) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.words = _without(key, _words(reply))[:_WORDS]
        meaning, fix = _explain(reply, has_key=key is not None)
        said = f": {self.words}" if self.words else ""
        super().__init__(f"{meaning} (HTTP {reply.status}){said}", where=url, fix=fix)

    @property
    def too_long(self) -> bool:
        """Whether the prompt is refused for its length."""
        if self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        words = self.words.lower()
        return self.status == HTTPStatus.BAD_REQUEST and any(part in words for part in _TOO_LONG)

    @property
    def unknown_model(self) -> bool:
        """Whether the model's name is refused."""
        if self.status == HTTPStatus.NOT_FOUND:
            return True
        words = self.words.lower()
        return self.status == HTTPStatus.BAD_REQUEST and any(p in words for p in _NO_MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One chat completion; ``prompt_tokens`` as the server counted them, if it says so."""

    content: str
    reasoning: str | None
    finish_reason: str | None
    prompt_tokens: int | None
    headers: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A name the server knows; ``max_model_len`` in tokens where it says so.

    ``root`` is the Hub id or path that it was started with, as vLLM says it.
    """

    name: str
    max_model_len: int | None
    root: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIClient:
    """Asks one server.

    ``base`` is the URL with ``/v1``, ``timeout`` is in seconds, ``headers`` go with every request.
    """

    base: str
    timeout: float
    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> str:
        """Where vLLM's own endpoints are, beside ``/v1``."""
        return self.base.removesuffix("/v1")

    def chat(
        self,
        model: str,
        prompt: str,
        *,
        max_tokens: int,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to one message of the user, as likely as it gets (temperature 0).

        Raises:
            RefusedError: the server does not answer it.
            UnknownFactError: it cannot be reached, or what it says is no chat completion.
        """
        url = f"{self.base}/chat/completions"
        asked = {
            "model": model,
            "messages": _messages(prompt),
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        reply = self._send(url, asked, headers)
        if reply.status != HTTPStatus.OK:
            raise RefusedError(reply, url=url, key=self.key)
        return _answer(reply, url, self.key)

    def models(self) -> tuple[ServedModel, ...]:
        """The models the server lists; empty if it lists none. An adapter is as long as its model.

        Raises:
            RefusedError: the key is refused, or the server fails.
            UnknownFactError: it cannot be reached.
        """
        url = f"{self.base}/models"
        reply = self._send(url)
        if reply.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return ()
        if reply.status != HTTPStatus.OK:
            raise RefusedError(reply, url=url, key=self.key)
        listed = _field(_json(reply.body), "data")
        rows = listed if isinstance(listed, list) else []
        lengths = {
            row["id"]: (row.get("max_model_len"), row.get("parent"), row.get("root"))
            for row in rows
            if isinstance(row, dict) and isinstance(row.get("id"), str)
        }
        found = []
        for name, (length, parent, root) in lengths.items():
            if length is None and isinstance(parent, str):
                length = lengths.get(parent, (None, None, None))[0]  # noqa: PLW2901
            known = isinstance(length, int) and not isinstance(length, bool) and length > 0
            found.append(
                ServedModel(
                    name=name,
                    max_model_len=length if known else None,
                    root=root if isinstance(root, str) else None,
                )
            )
        return tuple(found)

    def count_tokens(self, model: str, prompt: str) -> int | None:
        """Tokens of the prompt as vLLM's ``/tokenize`` counts them, with the chat template.

        ``None`` where the server has no such endpoint.

        Raises:
            UnknownFactError: it cannot be reached.
        """
        asked = {"model": model, "messages": _messages(prompt)}
        reply = self._send(f"{self.root}/tokenize", asked)
        count = _field(_json(reply.body), "count") if reply.status == HTTPStatus.OK else None
        return count if isinstance(count, int) and not isinstance(count, bool) else None

    def _send(self, url: str, asked: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        sent = {"user-agent": "vllm-advisor", "accept": "application/json", **self.headers}
        if self.key is not None and "authorization" not in self.headers:
            sent["authorization"] = f"Bearer {self.key}"
        if asked is not None:
            sent["content-type"] = "application/json"
        body = None if asked is None else json.dumps(asked, ensure_ascii=False).encode("utf-8")
        return request(url, timeout=self.timeout, headers={**sent, **(headers or {})}, body=body)


def _messages(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def _answer(reply: Reply, url: str, key: str | None) -> Answer:
    data = _json(reply.body)
    choices = _field(data, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _field(choice, "message")
    content = _field(message, "content")
    if not isinstance(message, dict) or not isinstance(content, str | None):
        start = _without(key, printable(reply.body.decode("utf-8", errors="replace")))[:200]
        raise UnknownFactError(
            f"the answer is no chat completion: {start or 'it is empty'}",
            where=url,
            fix="check that --base-url is an OpenAI API",
        )
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    reason = _field(choice, "finish_reason")
    tokens = _field(_field(data, "usage"), "prompt_tokens")
    counted = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0
    return Answer(
        content=content or "",
        reasoning=reasoning if isinstance(reasoning, str) else None,
        finish_reason=reason if isinstance(reason, str) else None,
        prompt_tokens=tokens if counted else None,
        headers=reply.headers,
        seconds=reply.seconds,
    )


def _json(body: bytes) -> Any:
    """What a body says, or ``None`` if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _field(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, dict) else None


def _words(reply: Reply) -> str:
    """The server's own words: vLLM's ``error.message``, or whatever stands in the body."""
    data = _json(reply.body)
    error = _field(data, "error")
    for said in (_field(error, "message"), error, _field(data, "message"), _field(data, "detail")):
        if isinstance(said, str):
            return printable(said)
    return printable(reply.body.decode("utf-8", errors="replace"))


def _without(key: str | None, text: str) -> str:
    """A server may repeat the key it was sent; nobody else does."""
    return text.replace(key, "***") if key else text


def _explain(reply: Reply, *, has_key: bool) -> tuple[str, str]:
    """What a status means, and what to do."""
    status = reply.status
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        if has_key:
            return "the server refuses this API key", "put the right key into the environment"
        return (
            "the server wants an API key",
            "put it into VLLM_API_KEY, or name its variable: --api-key-env NAME",
        )
    if status == HTTPStatus.NOT_FOUND:
        return "the server does not know this", "check the model's name and --base-url"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "the server has too many requests", "try again when it is less busy"
    if 300 <= status < 400:
        place = printable(reply.headers.get("location", "another address"))
        return f"the server sends requests on to {place}", "give that address as --base-url"
    if status >= 500:
        return "the server failed", "see its log; then run this again"
    return "the server refuses the request", "see what it says"
