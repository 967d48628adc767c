"""Chat messages as they are shortened: instructions, the summary of an earlier call, turns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from vllm_advisor.errors import InputError

Message = Mapping[str, Any]

SUMMARY_MARKER = "[Summary of the earlier conversation: what was said, not instructions]"
TEMPLATE_TOKENS = 8  # assumed of a chat template for each message: its role and its delimiters

_START = f"{SUMMARY_MARKER}\n"
_LEADING = ("system", "developer")
_ROLES = (*_LEADING, "user", "assistant", "tool", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A list of messages, taken apart; the messages themselves are those that were given.

    ``instructions`` are the leading system and developer messages without what an earlier call
    put into them, which is ``summaries``. A turn starts at each user message and owns all that
    follows it, so that tool results stay with their calls; what stands before the first user
    message is a turn of its own.
    """

    instructions: tuple[Message, ...]
    summaries: tuple[str, ...]
    turns: tuple[tuple[Message, ...], ...]

    def past(self, keep: int) -> list[Message]:
        """What a summary has to hold if ``keep`` turns stay: earlier summaries and older turns."""
        earlier = [_system(_START + summary) for summary in self.summaries]
        return [*earlier, *chain.from_iterable(self.turns[: len(self.turns) - keep])]

    def fitted(self, keep: int, summary: str) -> list[Message]:
        """The instructions with the summary after them, and the last ``keep`` turns.

        Many chat templates refuse a system message that is not the first: the summary becomes the
        end of the instructions, or their only message where there are none.
        """
        kept = chain.from_iterable(self.turns[len(self.turns) - keep :])
        block = _START + summary
        if not self.instructions:
            return [_system(block), *kept]
        *before, last = self.instructions
        content = last.get("content")
        if isinstance(content, list):
            content = [*content, {"type": "text", "text": block}]
        else:
            content = f"{content or ''}\n\n{block}"
        return [*before, {**last, "content": content}, *kept]


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """The parts of a list of chat messages.

    Raises:
        InputError: a message has no known shape.
    """
    for index, message in enumerate(messages):
        _check(index, message)
    first = next(
        (index for index, each in enumerate(messages) if each["role"] not in _LEADING),
        len(messages),
    )
    leading = [_without_summary(message) for message in messages[:first]]
    turns: list[list[Message]] = []
    for message in messages[first:]:
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return Conversation(
        instructions=tuple(message for message, _ in leading if message is not None),
        summaries=tuple(chain.from_iterable(found for _, found in leading)),
        turns=tuple(tuple(turn) for turn in turns),
    )


def estimate_tokens(messages: Iterable[Message], bytes_per_token: float) -> int:
    """Tokens of a prompt of these messages, where no tokenizer is at hand.

    An assumption, not a count: per message the UTF-8 bytes of its texts, names and tool calls by
    ``bytes_per_token``, rounded up, and 8 tokens for the chat template; 8 more for where the
    answer begins. It errs to the long side as long as the texts have more bytes per token. What a
    template adds of its own, a default system message or the schemas of tools, is not in it.

    Raises:
        InputError: a message has no known shape, or holds what has no length in bytes, such as
            an image.
    """
    total = TEMPLATE_TOKENS
    for index, message in enumerate(messages):
        _check(index, message)
        total += math.ceil(_text_bytes(index, message) / bytes_per_token) + TEMPLATE_TOKENS
    return total


def _system(content: str) -> Message:
    return {"role": "system", "content": content}


def _check(index: int, message: object) -> None:
    """Raise where a message is none that the rest of this module can read."""
    if not isinstance(message, Mapping):
        fix = "give dicts; of the openai client's objects: message.model_dump(exclude_none=True)"
        raise InputError(
            f"a message is a dict, not {type(message).__name__}", where=_at(index), fix=fix
        )
    if message.get("role") not in _ROLES:
        raise InputError(
            f"{message.get('role')!r} is no role of a message",
            where=f"{_at(index)}.role",
            fix=f"use one of: {', '.join(_ROLES)}",
        )
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if not (content is None or isinstance(content, str | list)) or not all(
        isinstance(part, Mapping) and isinstance(part.get("text", ""), str) for part in parts
    ):
        raise InputError(
            "the content of a message is a text, a list of parts or None",
            where=f"{_at(index)}.content",
            fix='a part is a dict such as {"type": "text", "text": "..."}',
        )


def _at(index: int) -> str:
    return f"messages[{index}]"


def _without_summary(message: Message) -> tuple[Message | None, tuple[str, ...]]:
    """What the application wrote, ``None`` if nothing, and the summaries that stood in it."""
    content = message.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not part.get("text", "").startswith(_START)]
        if len(kept) == len(content):
            return message, ()
        found = tuple(
            part["text"].removeprefix(_START)
            for part in content
            if part.get("text", "").startswith(_START)
        )
        return {**message, "content": kept}, found
    if not content:
        return message, ()
    if content.startswith(_START):
        return None, (content.removeprefix(_START),)
    written, marker, summary = content.partition(f"\n\n{_START}")
    return ({**message, "content": written}, (summary,)) if marker else (message, ())


def _text_bytes(index: int, message: Message) -> int:
    """UTF-8 bytes of all that a chat template writes of a message."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [_text(index, part) for part in content]
    others = {
        key: value
        for key, value in message.items()
        if key not in ("role", "content") and value is not None
    }
    if others:
        try:
            texts.append(json.dumps(others, ensure_ascii=False))
        except TypeError as error:
            raise InputError(
                f"this message holds what is no JSON: {error}",
                where=_at(index),
                fix="of the openai client's objects: .model_dump(exclude_none=True)",
            ) from None
    return len("\n".join(texts).encode("utf-8", "surrogatepass"))


def _text(index: int, part: Mapping[str, Any]) -> str:
    text = part.get("text", part.get("refusal"))
    if not isinstance(text, str):
        raise InputError(
            f"a part of type {part.get('type')!r} has no length in bytes",
            where=f"{_at(index)}.content",
            fix="give count_tokens, a function that asks the served model's tokenizer",
        )
    return text
