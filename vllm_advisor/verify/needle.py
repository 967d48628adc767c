"""Puts a needle into a long document, asks a server for it, and says where it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from vllm_advisor.errors import InputError
from vllm_advisor.verify.client import OpenAIClient, RefusedError, ServedModel
from vllm_advisor.verify.counting import TokenCounter, token_counter
from vllm_advisor.verify.haystack import copies, longest, piece, place
from vllm_advisor.verify.needle_result import Cell, NeedleResult, Outcome
from vllm_advisor.verify.question import Needle, NeedleTexts, check_unknown
from vllm_advisor.verify.transport import printable

# The code of each cell has another number of tokens, and so has the joint around the needle.
_SLACK_TOKENS = 16
_ESTIMATE_SHARE = 0.97  # of a length that cannot be counted, so that the longest still fits
_QUARTERS = (25, 50, 75, 100)
_LONGEST = 20_000_000  # tokens; what no model reads would only fill the memory here


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleTest:
    """What to try.

    ``document`` is the text and ``file`` its name; ``depths`` are in percent, ``lengths`` in tokens
    of the whole prompt, from the server's limit if there are none.
    """

    model: str
    document: str
    file: str
    texts: NeedleTexts
    depths: tuple[float, ...]
    lengths: tuple[int, ...] = ()
    max_tokens: int = 64
    min_hit_rate: float = 1.0


def find_needles(
    client: OpenAIClient, test: NeedleTest, progress: Callable[[str], None]
) -> NeedleResult:
    """Try every length at every depth, one request after the other.

    Args:
        client: the server.
        test: what to try.
        progress: told each cell before it is asked.

    Raises:
        InputError: the server has no such model, a length is too short, or the document tells the
            answer already.
        UnknownFactError: the server cannot be reached, fails or refuses the key.
    """
    models = client.models()
    lengths = test.lengths or _lengths(models, test)
    if max(lengths) > _LONGEST:
        raise InputError(
            f"{max(lengths):,} tokens are more than {_LONGEST:,}",
            where="--lengths",
            fix="give less",
        )
    needles = (test.texts.at(depth=d, length=n) for n in lengths for d in test.depths)
    check_unknown(needles, test.document)
    try:
        counter = token_counter(client, test.model, test.document, min(lengths))
        cells = _cells(client, test, lengths, counter, progress)
    except RefusedError as refusal:
        if refusal.status == HTTPStatus.NOT_FOUND:
            raise _unknown_model(test.model, models, refusal.what) from None
        raise
    return NeedleResult(
        model=test.model,
        base_url=client.base,
        document=test.file,
        texts=test.texts,
        max_tokens=test.max_tokens,
        min_hit_rate=test.min_hit_rate,
        cells=tuple(cells),
        assumptions=(counter.assumption,) if counter.assumption else (),
    )


def _lengths(models: Sequence[ServedModel], test: NeedleTest) -> tuple[int, ...]:
    """Quarters of what the server takes beside the answer."""
    served = next((model for model in models if model.name == test.model), None)
    if served is None and models:
        raise _unknown_model(test.model, models, f"the server has no model {test.model!r}")
    if served is None or served.max_model_len is None:
        raise InputError(
            "the server does not say how long a prompt may be",
            where="--lengths",
            fix="--lengths 4000,32K",
        )
    room = served.max_model_len - test.max_tokens
    if room <= 0:
        raise InputError(
            f"an answer of {test.max_tokens:,} tokens leaves no room for a prompt in "
            f"{served.max_model_len:,}",
            where="--max-tokens",
            fix="give less",
        )
    return tuple(max(1, room * part // 100) for part in _QUARTERS)


def _unknown_model(name: str, models: Sequence[ServedModel], what: str) -> InputError:
    known = ", ".join(printable(model.name) for model in models)
    fix = f"it has: {known}" if known else f"check --base-url, and that it serves {name!r}"
    return InputError(what, where="--model", fix=fix)


def _cells(
    client: OpenAIClient,
    test: NeedleTest,
    lengths: Sequence[int],
    counter: TokenCounter,
    progress: Callable[[str], None],
) -> list[Cell]:
    made: list[Cell] = []
    total = len(lengths) * len(test.depths)
    for length in lengths:
        characters = _characters(test, length, counter)
        text = piece(test.document, characters)
        for depth in test.depths:
            progress(f"cell {len(made) + 1} of {total}: {length:,} tokens, depth {depth:g} %")
            needle = test.texts.at(depth=depth, length=length)
            prompt = needle.prompt(place(text, needle.sentence, depth))
            base = Cell(
                length=length,
                depth=depth,
                outcome=Outcome.MISS,
                expect=needle.expect,
                copies=copies(test.document, characters),
            )
            made.append(_asked(client, test, needle, prompt, base))
    return made


def _characters(test: NeedleTest, length: int, counter: TokenCounter) -> int:
    """Characters of the haystack that make a prompt of this length.

    Raises:
        InputError: needle and question alone are longer.
    """
    needle = test.texts.at(depth=test.depths[0], length=length)

    def count(characters: int) -> int:
        text = piece(test.document, characters)
        return counter(needle.prompt(place(text, needle.sentence, test.depths[0])))

    counted = counter.bytes_per_token is None
    target = length - _SLACK_TOKENS if counted else int(length * _ESTIMATE_SHARE)
    found = longest(count, target=target)
    if not found:
        raise InputError(
            f"{length:,} tokens are too few: the needle and its question take {count(0):,}",
            where="--lengths",
            fix="give longer ones",
        )
    return found


def _asked(client: OpenAIClient, test: NeedleTest, needle: Needle, prompt: str, base: Cell) -> Cell:
    """The cell with what came of it."""
    try:
        answer = client.chat(test.model, prompt, max_tokens=test.max_tokens)
    except RefusedError as refusal:
        if not refusal.too_long:
            raise
        return replace(base, outcome=Outcome.REFUSED, refusal=refusal.words)
    return replace(
        base,
        outcome=Outcome.HIT if needle.is_found(answer.content) else Outcome.MISS,
        prompt_tokens=answer.prompt_tokens,
        answer=answer.content,
        reasoning=None if answer.content.strip() else answer.reasoning,
        cut_off=answer.finish_reason == "length",
        seconds=answer.seconds,
    )
