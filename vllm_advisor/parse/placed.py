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

_LONGEST = 100_000  # characters that variables in variables may make of a text


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
        span = self.spans[self._after(offset) - 1]
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
        if pattern.search(self.text) is None:
            return self
        text, spans, unresolved, done = "", list[Span](), list(self.unresolved), 0
        for match in pattern.finditer(self.text):
            found = value(match) if len(text) < _LONGEST else None
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

    def words(self) -> list[PlacedText]:
        """The words of the text, as Compose and systemd split a command; no shell reads it.

        A word is unresolved if the name of anything unresolved in the text stands in it.
        """
        words: list[list[tuple[int, int]]] = []
        open_word = False
        for match in _PART.finditer(self.text):
            if match["blank"]:
                open_word = False
                continue
            if not open_word:
                words.append([])
                open_word = True
            words[-1] += _unquoted(match)
        return [self._joined(ranges) for ranges in words]

    def _joined(self, ranges: list[tuple[int, int]]) -> PlacedText:
        """Parts of the text as one."""
        text, spans = "", list[Span]()
        for start, end in ranges:
            spans += self._spans(start, end, to=len(text))
            text += self.text[start:end]
        unresolved = tuple(name for name in self.unresolved if name in text)
        return PlacedText(text, self.file, tuple(spans), unresolved)

    def _spans(self, start: int, end: int, *, to: int = 0) -> Iterable[Span]:
        """The spans of a part, its offsets counted from ``to``."""
        first = self.locate(start)
        yield Span(to, first.line, first.column)
        for index in range(self._after(start), len(self.spans)):
            span = self.spans[index]
            if span.offset >= end:
                return
            yield Span(span.offset - start + to, span.line, span.column)

    def _after(self, offset: int) -> int:
        """The first span that begins after an offset."""
        return bisect_right(self.spans, offset, key=lambda span: span.offset)


def _unquoted(match: re.Match[str]) -> list[tuple[int, int]]:
    """The ranges that a part of a word leaves when its quotes and backslashes are gone."""
    part, start, end = match[0], match.start(), match.end()
    if part.startswith("'"):
        return [(start + 1, end - (len(part) > 1 and part.endswith("'")))]
    if part.startswith("\\"):
        return [(start + 1, end)]
    if not part.startswith('"'):
        return [(start, end)]
    closed = len(part) > 1 and part.endswith('"') and not part.endswith('\\"')
    ranges, begun = [], start + 1
    for escape in re.finditer(r'\\["\\$`]', part[1 : len(part) - closed]):
        ranges.append((begun, start + 1 + escape.start()))
        begun = start + 2 + escape.start()
    return [*ranges, (begun, end - closed)]
