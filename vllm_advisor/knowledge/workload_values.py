"""The values that files written by people hold: token counts, sizes, names, and what limits them.

Base of the models in ``workload_file`` and ``workload_hardware``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from vllm_advisor.knowledge.yaml_marks import KeyPath
from vllm_advisor.units import parse_bytes, parse_tokens

LARGEST_CONTEXT = 10_485_760  # Llama 4 Scout's, the largest of any model that vLLM serves
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
INCONSISTENT = "inconsistent"  # the error type that carries Problems
UNREADABLE = "unreadable"  # the error type whose message is already in plain words


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong that no single value's type or limit can say; ``path`` is relative."""

    path: KeyPath
    what: str
    fix: str


def unreadable(why: str) -> PydanticCustomError:
    """A value that no type or limit can describe; ``why`` is a plain sentence."""
    return PydanticCustomError(UNREADABLE, "{why}", {"why": why})


def _read(parse: Callable[[str], int]) -> Callable[[Any], Any]:
    """A validator that reads text such as ``32k`` and leaves everything else alone."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except (ValueError, OverflowError) as error:
            raise unreadable(str(error)) from None

    return read


def _schema(minimum: int, pattern: str) -> WithJsonSchema:
    number = {"type": "integer", "minimum": minimum}
    return WithJsonSchema({"anyOf": [number, {"type": "string", "pattern": pattern}]})


_TOKENS = r"^[0-9]+(\.[0-9]+)?[kKmMgG]?$"
_BYTES = r"^[0-9]+(\.[0-9]+)? *[A-Za-z]*$"
_TokenCount = Annotated[int, BeforeValidator(_read(parse_tokens)), Field(le=LARGEST_CONTEXT)]
_ByteCount = Annotated[int, BeforeValidator(_read(parse_bytes)), Field(le=1 << 60)]

Tokens = Annotated[_TokenCount, Field(ge=1), _schema(1, _TOKENS)]
PrefixTokens = Annotated[_TokenCount, Field(ge=0), _schema(0, _TOKENS)]
Size = Annotated[_ByteCount, Field(ge=1), _schema(1, _BYTES)]
UsedSize = Annotated[_ByteCount, Field(ge=0), _schema(0, _BYTES)]
# One line that shows what it holds: no control, line-breaking or direction-changing characters.
_LINE = r"^[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+$"
Line = Annotated[str, Field(min_length=1, max_length=400, pattern=_LINE)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Keys(BaseModel):
    """Base of every mapping in the file: no unknown keys, no conversions, nothing half-checked."""

    # Built on first use: commands that read no workload do not wait for it.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = list(self.problems())
        if problems:
            raise PydanticCustomError(INCONSISTENT, "inconsistent", {"problems": problems})
        return self

    def problems(self) -> Iterator[Problem]:
        """What is wrong between the keys of this mapping."""
        yield from ()
