"""How long a prompt is: what vLLM says, or an estimate where it is not asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from vllm_advisor.routing import Message, estimate_tokens
from vllm_advisor.types.routing import RoutingPolicy


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


@dataclass
class TokenCounter:
    """Counts with vLLM's /tokenize, and estimates from the first time that it does not answer.

    Routers between here and vLLM often do not pass it on.
    """

    policy: RoutingPolicy
    client: Any
    estimates: bool = False

    def count(self, messages: list[Message]) -> int:
        """Tokens of the prompt that the messages make."""
        if not self.estimates:
            url = str(self.client.base_url).rstrip("/").removesuffix("/v1") + "/tokenize"
            body = {"model": self.policy.by_length[0], "messages": messages}
            try:
                return int(self.client.post(url, cast_to=object, body=body)["count"])
            except Exception as error:  # noqa: BLE001  whatever it is, an estimate will do
                self.estimates = True
                note(f"tokens are estimated from here on: {url} does not count them ({error!r})")
        return self.estimate(messages)

    def estimate(self, messages: list[Message]) -> int:
        """An assumption that errs to the long side."""
        told = self.policy.byte_count
        return estimate_tokens(messages, told.bytes_per_token * (1 - told.margin))

    def of_text(self, text: str) -> int:
        """An estimate for one text: retrieval asks for that of hundreds."""
        return self.estimate([{"role": "user", "content": text}])
