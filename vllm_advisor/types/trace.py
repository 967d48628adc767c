"""One request of recorded traffic: its lengths, and what else was written down of it."""

from __future__ import annotations

from typing import NamedTuple

from vllm_advisor.types.workload import Needs

BlockId = int | str


class TracedRequest(NamedTuple):
    """What a trace says of a request; ``None`` where it does not say.

    ``hash_ids`` name the blocks of the prompt in their order; each stands for the whole prompt up
    to its end, so that equal ids are equal prefixes. ``retrieved_tokens`` is the length of the
    prompt with passages in place of a document, ``history_tokens`` how much of the prompt is
    earlier conversation, ``max_tokens`` the longest answer that was asked for. ``arrival`` is in
    seconds from any moment, and is read only where it is asked for.

    A tuple, because traces have millions: a frozen dataclass takes five times as long to make.
    """

    prompt_tokens: int
    output_tokens: int | None = None
    needs: Needs | None = None
    request_class: str | None = None
    route: str | None = None
    retrieved_tokens: int | None = None
    history_tokens: int | None = None
    max_tokens: int | None = None
    hash_ids: tuple[BlockId, ...] | None = None
    arrival: float | None = None
