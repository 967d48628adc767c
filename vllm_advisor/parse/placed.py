"""Values and texts that know where they are written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from vllm_advisor.parse.shell import Token
from vllm_advisor.types.decision import Location

T = TypeVar("T")
# Words of a line that no shell reads: quotes group, a backslash keeps the next character.
_PART = re.compile(
    r"""(?P<blank>(?:\s|\\\r?\n)+)|'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.?|[^\s'"\\]+""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Placed(Generic[T]):
    """A value and where it stands."""

    value: T
    location: Location


class Span(NamedTuple):
    """From ``offset`` of a text on, its characters stand from ``line`` and ``column`` on."""

    offset: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text, and for each of its characters where it is written.

    ``spans`` are in the order of their offsets, the first one at 0. ``unresolved`` names the
    variables in it whose value is not known; they stand in ``text`` as written.
    """

    text: str
    file: str
    spans: tuple[Span, ...]
    unresolved: tuple[str, ...] = ()

    @classmethod
    def at_place(cls, text: str, place: Location) -> PlacedText:
        """A text on one line."""
        return cls(text, place.file, (Span(0, place.line, place.column),))

    @property
    def location(self) -> Location:
        """Where the text begins."""
        return self.locate(0)

    def locate(self, offset: int) -> Location:
        """Where the character at an offset stands; offsets beyond the end count on."""
        span = self.spans[bisect_right(self.spans, offset, key=lambda s: s.offset) - 1]
        return Location(
            file=self.file, line=span.line, column=span.column + max(0, offset - span.offset)
        )

    def token(self) -> Token:
        """The text as one word of a command."""
        return Token(self.text, self.location, self.unresolved)

    def part(self, start: int, end: int) -> PlacedText:
        """The text between two offsets."""
        return PlacedText(self.text[start:end], self.file, tuple(self._spans(start, end)))

    def replaced(
        self, pattern: re.Pattern[str], value: Callable[[re.Match[str]], str | None]
    ) -> PlacedText:
        """The text with each match replaced; where ``value`` is None it stays, unresolved.

        What is put in counts as standing where the match stands. The name of what stays is the
        match's group ``name``, or all of it.
        """
        text, spans, unresolved, done = "", list[Span](), list(self.unresolved), 0
        for match in pattern.finditer(self.text):
            found = value(match)
            if found is None:
                unresolved.append(match.groupdict().get("name") or match[0])
                continue
            spans += self._spans(done, match.start(), to=len(text))
            text += self.text[done : match.start()]
            place = self.locate(match.start())
            spans.append(Span(len(text), place.line, place.column))
            text += found
            done = match.end()
        spans += self._spans(done, len(self.text), to=len(text))
        text += self.text[done:]
        return PlacedText(text, self.file, tuple(spans), tuple(unresolved))

    def words(self) -> list[Token]:
        """The words of the text, as Compose and systemd split a command; no shell reads it.

        A word is unresolved if the name of anything unresolved in the text stands in it.
        """
        words: list[tuple[str, int]] = []
        open_word = False
        for match in _PART.finditer(self.text):
            part = match[0]
            if match["blank"]:
                open_word = False
                continue
            if not open_word:
                words.append(("", match.start()))
                open_word = True
            words[-1] = (words[-1][0] + _unquoted(part), words[-1][1])
        return [
            Token(word, self.locate(start), tuple(name for name in self.unresolved if name in word))
            for word, start in words
        ]

    def _spans(self, start: int, end: int, *, to: int = 0) -> Iterable[Span]:
        """The spans of a part, its offsets counted from ``to``."""
        first = self.locate(start)
        yield Span(to, first.line, first.column)
        for span in self.spans:
            if start < span.offset < end:
                yield Span(span.offset - start + to, span.line, span.column)


def _unquoted(part: str) -> str:
    if part.startswith("'"):
        return part[1:].removesuffix("'")
    if part.startswith('"'):
        inner = part[1:-1] if len(part) > 1 and part.endswith('"') else part[1:]
        return re.sub(r'\\(["\\$`])', r"\1", inner)
    return part[1:] if part.startswith("\\") else part
