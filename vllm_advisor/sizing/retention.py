"""What a retention policy keeps of a prompt's KV cache, and whether a needle can still be seen.

A policy describes layers of one kind. In a hybrid model (Gemma 3, gpt-oss) the full-attention
layers still keep everything: :class:`Full` is their policy. Bytes are what the policy keeps;
vLLM allocates more for a sliding window (tokens in flight, whole blocks). All is as the last
prompt token sees it, the best case: each generated token moves a window one position on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from vllm_advisor.errors import InputError
from vllm_advisor.types.source import Source, SourceKind

NEEDLE_PERCENTS = (10, 50, 90)
DEFAULT_NEEDLE_TOKENS = 16  # one short sentence
_FLAGS = Source(SourceKind.VLLM, "0.33.0:vllm/engine/arg_utils.py#EngineArgs")


class Visibility(StrEnum):
    """Whether every token of a needle is kept when the answer begins."""

    SEEN = "seen"
    LOST = "lost"  # at least one token is certainly gone, and exact recall with it
    DEPENDS = "depends"  # on attention scores nobody knows before running


class Support(StrEnum):
    """How vLLM offers a policy."""

    DEFAULT = "default"  # what it does anyway
    MODEL = "model"  # only for models trained with it; not a setting
    NONE = "none"  # no flag


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSupport:
    """Whether vLLM has a switch for a policy, and the nearest thing it has."""

    support: Support
    how: str
    nearest: tuple[str, ...] = ()
    versions: tuple[str, ...] = ("0.32.0", "0.33.0")
    source: Source = _FLAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRange:
    """Positions ``start <= i < end`` of the prompt, counted from 0."""

    start: int
    end: int

    @property
    def tokens(self) -> int:
        """Number of positions."""
        return self.end - self.start


class Policy:
    """One way to decide which positions stay.

    ``formula`` counts them for a prompt of n tokens. ``layers_read_whole_prompt`` is False where
    no layer ever attends beyond what the policy keeps.
    """

    __slots__ = ()
    name: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[Source]
    vllm: ClassVar[VllmSupport]
    layers_read_whole_prompt: ClassVar[bool] = True

    def counts(self, prompt_tokens: int) -> tuple[int, int, int]:
        """Positions kept: the first ones, the last ones, and further ones chosen by score."""
        return 0, prompt_tokens, 0

    def receptive_field(self, prompt_tokens: int, num_layers: int) -> tuple[TokenRange, ...]:
        """Positions that can have had any influence on the last token: an upper bound.

        A window of W passes content W - 1 positions on in each layer, so the last token depends
        on ``num_layers x (W - 1) + 1`` positions at most. Sinks come first and carry nothing
        of what follows them.
        """
        first, last, _ = self.counts(prompt_tokens)
        reach = prompt_tokens if self.layers_read_whole_prompt else num_layers * (last - 1) + 1
        return _first_and_last(prompt_tokens, first, reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Policy):
    """Every position stays."""

    name = "full"
    formula = "n"
    source = Source(SourceKind.FORMULA, "causal-attention")
    vllm = VllmSupport(
        support=Support.DEFAULT, how="full-attention layers keep every token; no flag is needed"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(Policy):
    """The last ``window`` positions stay: token i sees j where ``0 <= i - j < window``.

    The mask is causal and counts the token itself, so exactly ``window`` positions are seen.
    """

    window: int
    name = "sliding-window"
    formula = "min(n, window)"
    source = Source(SourceKind.DOCS, "https://arxiv.org/abs/2310.06825")
    vllm = VllmSupport(
        support=Support.MODEL,
        how="read from config.json of models trained with a window; no flag sets one, and "
        "--disable-sliding-window turns it off by capping the model length at the window",
        nearest=("a model trained with a window: Mistral 7B v0.1, Gemma 3, gpt-oss",),
    )
    layers_read_whole_prompt = False

    def __post_init__(self) -> None:
        _require("window", self.window, 1)

    def counts(self, prompt_tokens: int) -> tuple[int, int, int]:  # noqa: ARG002
        """The last ``window`` positions."""
        return 0, self.window, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SinksAndWindow(Policy):
    """The first ``sinks`` and the last ``window`` positions stay (StreamingLLM)."""

    sinks: int
    window: int
    name = "sinks-and-window"
    formula = "min(n, sinks + window)"
    source = Source(SourceKind.DOCS, "https://arxiv.org/abs/2309.17453")
    vllm = VllmSupport(
        support=Support.NONE,
        how="no flag; the attention sinks of gpt-oss are learned logits, not tokens that stay",
        nearest=(
            "a model trained with a sliding window",
            "the application keeps the system prompt and truncates or summarises the history",
        ),
    )
    layers_read_whole_prompt = False

    def __post_init__(self) -> None:
        _require("sinks", self.sinks, 0)
        _require("window", self.window, 1)

    def counts(self, prompt_tokens: int) -> tuple[int, int, int]:  # noqa: ARG002
        """The sinks and the window."""
        return self.sinks, self.window, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(Policy):
    """The last ``recent`` and ``budget - recent`` more by attention score (H2O, Scissorhands).

    Heads choose for themselves, so two heads may keep different positions. The prompt is read
    with full attention before anything is dropped.
    """

    budget: int
    recent: int
    name = "heavy-hitters"
    formula = "min(n, budget)"
    source = Source(SourceKind.DOCS, "https://arxiv.org/abs/2306.14048")
    vllm = VllmSupport(
        support=Support.NONE,
        how="no flag; blocks are shared by all heads and the kernels give no attention scores out",
        nearest=(
            "--kv-cache-dtype fp8: half the bytes, no position dropped",
            "--kv-offloading-size: cached blocks kept in CPU memory, no position dropped",
            "retrieval in the application: a shorter prompt",
        ),
    )

    def __post_init__(self) -> None:
        _require("recent", self.recent, 0)
        _require("budget", self.budget, max(1, self.recent))

    def counts(self, prompt_tokens: int) -> tuple[int, int, int]:
        """All of the prompt within the budget; beyond it the recent ones and the chosen ones."""
        if prompt_tokens <= self.budget:
            return 0, prompt_tokens, 0
        return 0, self.recent, self.budget - self.recent


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleVisibility:
    """A needle at ``percent`` of the prompt, and whether the policy keeps all of it.

    ``within_receptive_field`` bounds indirect influence through the layers from above: False
    means no layer can have passed all of it on; ``None`` when no layer count was given.
    """

    percent: int
    needle: TokenRange
    visibility: Visibility
    within_receptive_field: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What ``policy`` keeps of a prompt.

    ``kept`` certainly stays; ``chosen`` more positions stay that attention scores pick, which
    ones is unknown before running; ``tokens`` counts both.
    """

    policy: Policy
    prompt_tokens: int
    kept: tuple[TokenRange, ...]
    chosen: int
    tokens: int
    bytes: int
    needles: tuple[NeedleVisibility, ...]


def compare(
    policies: Iterable[Policy],
    prompt_tokens: int,
    bytes_per_token: int,
    *,
    needle_tokens: int = DEFAULT_NEEDLE_TOKENS,
    num_layers: int | None = None,
) -> tuple[Retention, ...]:
    """What each policy keeps of the same prompt, in the order given.

    The needle is part of the prompt and starts at ``percent`` of the text around it, at token
    ``(prompt_tokens - needle_tokens) x percent // 100``, as needle tests insert it.
    ``bytes_per_token`` are the KV bytes of one token over all ``num_layers`` layers that follow
    the policy; the layer count only serves the bound on indirect influence.

    Raises:
        InputError: a count is too small, or the needle is longer than the prompt.
    """
    _require("bytes_per_token", bytes_per_token, 0)
    _require("needle_tokens", needle_tokens, 1)
    _require("prompt_tokens", prompt_tokens, needle_tokens)
    _require("num_layers", 1 if num_layers is None else num_layers, 1)
    starts = ((p, (prompt_tokens - needle_tokens) * p // 100) for p in NEEDLE_PERCENTS)
    needles = tuple((p, TokenRange(start=s, end=s + needle_tokens)) for p, s in starts)
    results = []
    for policy in policies:
        first, last, chosen = policy.counts(prompt_tokens)
        kept = _first_and_last(prompt_tokens, first, last)
        tokens = sum(r.tokens for r in kept) + chosen
        field = None if num_layers is None else policy.receptive_field(prompt_tokens, num_layers)
        seen = (
            NeedleVisibility(
                percent=percent,
                needle=needle,
                visibility=_visibility(_missing(needle, kept), chosen),
                within_receptive_field=None if field is None else _missing(needle, field) == 0,
            )
            for percent, needle in needles
        )
        retention = Retention(
            policy=policy,
            prompt_tokens=prompt_tokens,
            kept=kept,
            chosen=chosen,
            tokens=tokens,
            bytes=tokens * bytes_per_token,
            needles=tuple(seen),
        )
        results.append(retention)
    return tuple(results)


def _first_and_last(prompt_tokens: int, first: int, last: int) -> tuple[TokenRange, ...]:
    if first + last >= prompt_tokens:
        return (TokenRange(start=0, end=prompt_tokens),)
    head = TokenRange(start=0, end=first)
    tail = TokenRange(start=prompt_tokens - last, end=prompt_tokens)
    return tuple(r for r in (head, tail) if r.tokens)


def _missing(needle: TokenRange, ranges: tuple[TokenRange, ...]) -> int:
    inside = (min(needle.end, r.end) - max(needle.start, r.start) for r in ranges)
    return needle.tokens - sum(max(0, tokens) for tokens in inside)


def _visibility(missing: int, chosen: int) -> Visibility:
    if missing == 0:
        return Visibility.SEEN
    return Visibility.DEPENDS if missing <= chosen else Visibility.LOST


def _require(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} is {value}", where=name, fix=f"give at least {least}")
