"""What a request costs on each way, and at which prices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """US dollars per million tokens; ``None`` where no price is known.

    ``cached_input`` is what a prompt token costs that the prefix cache holds: vLLM does not
    compute it again.
    """

    input: float | None = None
    output: float | None = None
    cached_input: float = 0.0

    def usd(self, prompt_tokens: float, cached_tokens: float, output_tokens: float) -> float | None:
        """Price of one request; ``prompt_tokens`` include the cached ones."""
        if self.input is None:
            return None
        new = prompt_tokens - cached_tokens
        cost = new * self.input + cached_tokens * self.cached_input
        return (cost + output_tokens * (self.output or 0.0)) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCost:
    """What a median request of a class takes on one route."""

    route: str | None  # None: no instance of the plan reads so much
    way: str  # "whole prompt", "passages" or "bounded history"
    prompt_tokens: int
    cached_tokens: int  # of them, on average, found in the prefix cache
    output_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCost:
    """The ways of one class side by side, and where they cost the same.

    ``break_even_requests_per_document``: from so many requests about one document, whole documents
    with prefix caching are cheaper than passages. ``break_even_retrieval_quality``: retrieval pays
    if the passages answer at least this share of the questions. ``None`` where it never turns.
    """

    request_class: str
    ways: tuple[RouteCost, ...]
    requests_per_document: float = 1.0
    break_even_requests_per_document: int | None = None
    break_even_retrieval_quality: float | None = None
