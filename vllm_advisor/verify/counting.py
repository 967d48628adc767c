"""How many tokens a prompt has: as the server counts it, or by its bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.verify.client import OpenAIClient, RefusedError
from vllm_advisor.verify.haystack import piece

_BYTES_PER_TOKEN = 4.0  # English text, where the server does not count a sample
_SAMPLE_CHARACTERS = 16_000
_LEAST, _MOST = 0.5, 16.0  # no tokenizer makes more or fewer tokens of text; a wrong usage might


def bytes_per_token(size: int, tokens: int) -> float:
    """What a prompt of ``size`` bytes and ``tokens`` tokens says, within what text can have."""
    return min(max(size / tokens, _LEAST), _MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts prompts; ``bytes_per_token`` is ``None`` where the server does it."""

    client: OpenAIClient
    model: str
    bytes_per_token: float | None = None
    assumption: str | None = None

    def __call__(self, prompt: str) -> int:
        """Tokens of a whole prompt.

        Raises:
            UnknownFactError: the server does not count any longer.
        """
        if self.bytes_per_token is not None:
            return math.ceil(len(prompt.encode("utf-8")) / self.bytes_per_token)
        count = self.client.count_tokens(self.model, prompt)
        if count is None:
            raise UnknownFactError(
                "the server stopped counting tokens",
                where=f"{self.client.root}/tokenize",
                fix="see its log; then run this again",
            )
        return count


def token_counter(client: OpenAIClient, model: str, document: str, shortest: int) -> TokenCounter:
    """The server's ``/tokenize`` where it answers; else its bytes per token for this document.

    These are measured by one completion of a sample, whose usage is read.

    Args:
        client: the server.
        model: its name there.
        document: the text that prompts are made of.
        shortest: tokens of the shortest prompt; the sample has no more characters than that.

    Raises:
        RefusedError: the server does not answer the sample.
        UnknownFactError: it cannot be reached.
    """
    if client.count_tokens(model, "count") is not None:
        return TokenCounter(client=client, model=model)
    sample = piece(document, min(_SAMPLE_CHARACTERS, shortest))
    size = len(sample.encode("utf-8"))
    counted = _counted(client, model, sample)
    if counted is None:
        return TokenCounter(
            client=client,
            model=model,
            bytes_per_token=_BYTES_PER_TOKEN,
            assumption=f"the server has no /tokenize and did not count a sample of {size:,} bytes: "
            f"lengths are made at {_BYTES_PER_TOKEN:g} bytes per token",
        )
    ratio = bytes_per_token(size, counted)
    return TokenCounter(
        client=client,
        model=model,
        bytes_per_token=ratio,
        assumption=f"the server has no /tokenize: lengths are made at {ratio:.2f} bytes per token, "
        f"as it counted a sample of {size:,} bytes of the document",
    )


def _counted(client: OpenAIClient, model: str, sample: str) -> int | None:
    try:
        return client.chat(model, sample, max_tokens=1).prompt_tokens
    except RefusedError as refusal:
        if refusal.too_long:
            return None
        raise
