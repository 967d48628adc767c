"""Which column of a trace holds what, and how its values are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.parse.trace_arrivals import ARRIVAL_COLUMNS
from vllm_advisor.types.trace import BlockId
from vllm_advisor.types.workload import Needs

# Names as the public traces write them, in lower case: Azure, Mooncake, BurstGPT, Vidur.
PROMPT_COLUMNS = (
    "prompt_tokens",
    "contexttokens",
    "input_length",
    "request tokens",
    "input_tokens",
    "num_prefill_tokens",
    "prompt_len",
)
OUTPUT_COLUMNS = (
    "output_tokens",
    "generatedtokens",
    "output_length",
    "response tokens",
    "completion_tokens",
    "num_decode_tokens",
    "output_len",
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "prompt_tokens": PROMPT_COLUMNS,
    "output_tokens": OUTPUT_COLUMNS,
    "needs": ("needs",),
    "request_class": ("request_class", "class"),
    "route": ("route",),
    "retrieved_tokens": ("retrieved_tokens",),
    "history_tokens": ("history_tokens",),
    "max_tokens": ("max_tokens",),
    "hash_ids": ("hash_ids",),
}
_HOLDS = {
    "prompt_tokens": "the length of the prompt",
    "output_tokens": "the length of the answer",
    "arrival": "the time of arrival",
}
_OPTIONS = {
    "prompt_tokens": "--prompt-column or --output-column",
    "output_tokens": "--prompt-column or --output-column",
    "arrival": "--arrival-column",
}
_MOST_TOKENS = 10**12
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a trace may call things; ``None`` takes any class or route.

    ``required`` are the fields that every row has to fill. Arrivals are read where they are one.
    """

    prompt_column: str | None = None
    output_column: str | None = None
    arrival_column: str | None = None
    required: Collection[str] = ("prompt_tokens",)
    classes: Collection[str] | None = None
    routes: Collection[str] | None = None


def find_columns(header: Sequence[str], names: Names, where: str) -> dict[str, int]:
    """Positions of the columns that are understood, by the field they fill.

    Raises:
        InputError: there is none for a field that is required, one that was asked for is not
            there, or two hold the same.
    """
    lower = [str(name).strip().lower() for name in header]
    asked = {
        "prompt_tokens": names.prompt_column,
        "output_tokens": names.output_column,
        "arrival": names.arrival_column,
    }
    columns = {**COLUMNS, "arrival": ARRIVAL_COLUMNS} if "arrival" in names.required else COLUMNS
    found: dict[str, int] = {}
    for field, known in columns.items():
        given = asked.get(field)
        wanted = (given.strip().lower(),) if given is not None else known
        places = [place for place, name in enumerate(lower) if name in wanted]
        if len(places) > 1:
            raise InputError(
                f"two columns hold {field}: {', '.join(header[place] for place in places)}",
                where=where,
                fix=f"say which: --{field.split('_')[0]}-column NAME"
                if field in asked
                else "take one of them out",
            )
        if places:
            found[field] = places[0]
        elif given is not None or field in names.required:
            raise InputError(
                f"there is no column {given!r}"
                if given is not None
                else f"there is no column with {_HOLDS[field]}",
                where=where,
                fix=f"its columns are: {_listed(header)}; name one with {_OPTIONS[field]}, "
                f"or call it one of: {', '.join(known)}",
            )
    return found


def _listed(header: Sequence[str]) -> str:
    shown = ", ".join(str(name)[:40] for name in header[:12])
    return shown + (", ..." if len(header) > 12 else "") or "none"


def field_readers(names: Names) -> dict[str, Callable[[Any], Any]]:
    """How the value of each field is read; ``None`` and empty text are values that are not there.

    A reader raises ValueError with what is wrong.
    """
    return {
        **dict.fromkeys(("prompt_tokens", "output_tokens"), read_tokens),
        **dict.fromkeys(("retrieved_tokens", "history_tokens"), read_tokens),
        "max_tokens": _read_max_tokens,
        "needs": _read_needs,
        "request_class": lambda value: _read_name(value, "class", names.classes),
        "route": lambda value: _read_name(value, "route", names.routes),
        "hash_ids": _read_hash_ids,
    }


def read_tokens(value: Any) -> int | None:
    """A number of tokens: ``374``, ``"374"`` or ``"374.0"``.

    Raises:
        ValueError: it is negative, not whole, or no number.
    """
    if type(value) is str:
        if len(value) <= 12 and value.isdecimal() and value.isascii():
            return int(value)
        value = value.strip()
        if not value:
            return None
        if not _NUMBER.fullmatch(value):
            raise ValueError("this is no number of tokens")
        value = float(value)
    if value is None:
        return None
    if type(value) not in (int, float) or value != value:  # noqa: PLR0124 - NaN alone
        raise ValueError("this is no number of tokens")
    if value < 0:
        raise ValueError("a number of tokens is not negative")
    if value > _MOST_TOKENS:
        raise ValueError(f"this is more than {_MOST_TOKENS:,} tokens")
    if value != int(value):
        raise ValueError("a number of tokens is whole")
    return int(value)


def _read_max_tokens(value: Any) -> int | None:
    tokens = read_tokens(value)
    if tokens == 0:
        raise ValueError("an answer has at least one token")
    return tokens


def _read_needs(value: Any) -> Needs | None:
    if value is None or value == "":
        return None
    try:
        return Needs(value)
    except ValueError:
        known = ", ".join(need.value for need in Needs)
        raise ValueError(f"an answer needs one of: {known}") from None


def _read_name(value: Any, what: str, known: Collection[str] | None) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"the name of a {what} is text")  # noqa: TRY004 - one error for readers
    if known is not None and value not in known:
        listed = f"it has: {', '.join(known)}" if known else "it has none"
        raise ValueError(f"the policy has no such {what}; {listed}")
    return value


def _read_hash_ids(value: Any) -> tuple[BlockId, ...] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):  # a cell of CSV
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("this is no list of block ids") from None
    if not isinstance(value, list) or not {int, str}.issuperset(map(type, value)):
        raise ValueError("this is no list of block ids")
    return tuple(value)
