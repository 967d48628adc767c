"""What a router says of one request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Action(StrEnum):
    """What the application does next."""

    SEND = "send"  # the prompt as it is, to ``model``
    RETRIEVE = "retrieve"  # fetch passages, then decide again with ``retrieved_tokens``
    BOUND_HISTORY = "bound_history"  # fit_history to ``max_prompt_tokens``, then send to ``model``
    REFUSE = "refuse"  # no instance reads so much: tell the client (HTTP 400)
    UNAVAILABLE = "unavailable"  # who could take it does not answer: try later (HTTP 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingDecision:
    """Where a request goes, and why.

    ``prompt_tokens`` is what will be sent; ``retrieved`` says that it is the question with its
    passages. ``retrieve_tokens`` is the room for passages where the action is to retrieve.
    ``stand_ins`` may be asked, in this order, if ``route`` does not answer.
    """

    action: Action
    reason: str
    prompt_tokens: int
    route: str | None = None
    instance: str | None = None
    model: str | None = None
    max_prompt_tokens: int | None = None
    retrieve_tokens: int | None = None
    retrieved: bool = False
    stand_ins: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
