"""What an engine of a replay works on: its requests, and prompts of others that it waits for."""

from __future__ import annotations

from typing import NamedTuple

from vllm_advisor.types.replay import ReplayRequest


class ReplayedSequence:
    """A request on its way; ``generated`` is as of when it began to, or was preempted."""

    __slots__ = (
        "arrival",
        "cached",
        "first",
        "generated",
        "index",
        "joined",
        "last",
        "left",
        "output",
        "prompt",
        "queued",
        "serial",
    )

    def __init__(self, index: int, arrival: float, ready: float, request: ReplayRequest) -> None:
        self.index = index
        self.arrival = arrival
        self.queued = ready
        self.prompt = request.prompt
        self.output = request.output
        self.cached = request.cached
        self.generated = 0
        self.joined = 0  # step after which it began to generate
        self.serial = 0  # number of that beginning; 0 while it does not generate
        self.left = 0  # tokens to be read
        self.first = self.last = (
            0.0  # when it got its first token, and its last before a preemption
        )


class Elsewhere(NamedTuple):
    """Prompt tokens per second of other engines that share experts, and how many come at once."""

    rate: float
    chunk: float
