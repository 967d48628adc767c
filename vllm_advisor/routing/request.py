"""What is known of a request when it is routed, and the errors of those who ask wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass

from vllm_advisor.errors import InputError
from vllm_advisor.types.routing import PolicyRoute
from vllm_advisor.types.workload import Needs

Tokenizer = Callable[[str], "int | Sized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the decision looks at; ``down`` names instances and routes that do not answer."""

    tokens: int
    needs: Needs | None
    retrieved_tokens: int | None
    history_tokens: int | None
    max_tokens: int | None
    down: frozenset[str]

    def fits(self, route: PolicyRoute, tokens: int | None = None) -> bool:
        """The route takes the prompt, or so many tokens, beside the answer."""
        limit = route.prompt_limit(self.max_tokens)
        return (self.tokens if tokens is None else tokens) <= limit

    def fits_beside_its_answer(self, route: PolicyRoute) -> bool:
        """It fits because its own answer is stated to be shorter than what is reserved."""
        return self.max_tokens is not None and self.tokens + self.max_tokens <= route.max_model_len

    def limit_of(self, route: PolicyRoute) -> str:
        """``the 6,168 that chat takes``, and beside which answer where that leaves less."""
        limit = route.prompt_limit(self.max_tokens)
        text = f"the {max(0, limit):,} that {route.name} takes"
        if limit < route.max_prompt_tokens:
            text += f" beside an answer of {self.max_tokens:,}"
        return text

    def is_down(self, route: PolicyRoute) -> bool:
        """The route does not answer."""
        return route.name in self.down or route.instance in self.down


def prompt_length(
    prompt: str | None, prompt_tokens: int | None, tokenizer: Tokenizer | None
) -> int:
    """Tokens of the prompt.

    Raises:
        InputError: neither a number nor a text with a tokenizer is given.
    """
    if (prompt is None) == (prompt_tokens is None):
        raise InputError(
            "give either the prompt or its number of tokens",
            where="prompt_tokens",
            fix="decide(text, tokenizer=...) or decide(prompt_tokens=...)",
        )
    if prompt is None:
        return token_count("prompt_tokens", prompt_tokens) or 0
    if tokenizer is None:
        raise InputError(
            "a text has no length in tokens without a tokenizer",
            where="tokenizer",
            fix="give tokenizer=tokenizer.encode of the served model, or prompt_tokens",
        )
    found = tokenizer(prompt)
    return token_count("tokenizer", found if isinstance(found, int) else len(found)) or 0


def token_count(name: str, value: int | None, *, least: int = 0) -> int | None:
    """A number of tokens, or ``None`` where none is given.

    Raises:
        InputError: it is no whole number, or less than ``least``.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{value!r} is no number of tokens", where=name, fix=f"give a whole number >= {least}"
        )
    return value


def needs_of(value: Needs | str | None) -> Needs | None:
    """What the answer needs, or ``None`` where it is not said.

    Raises:
        InputError: it is none of :class:`Needs`.
    """
    if value is None:
        return None
    try:
        return Needs(value)
    except ValueError:
        known = ", ".join(need.value for need in Needs)
        raise InputError(
            f"{value!r} is nothing an answer can need", where="needs", fix=f"use one of: {known}"
        ) from None
