"""Variables of a shell script, and the expansion of its words with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from vllm_advisor.parse.shell_words import Piece, Word
from vllm_advisor.types.decision import Location

# What a script of variables that double each other may grow to, in characters and in words.
_LONGEST, _MOST = 100_000, 10_000
_PLAIN = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_ARGUMENTS = re.compile(r"\$\{?[@*](?::[^}]*)?\}?")
_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[([@*])\](?::?[-+].*)?\}", re.DOTALL)
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*)(:?[-=+])(.*)\}", re.DOTALL)


class Value(NamedTuple):
    """A value, and the names in it that could not be resolved."""

    text: str
    unresolved: tuple[str, ...] = ()


class Expanded(NamedTuple):
    """A word after expansion and its position in the text, or where it stands outside of it."""

    text: str
    unresolved: tuple[str, ...]
    start: int | Location


@dataclass(slots=True)
class Variables:
    """What the script has assigned so far, and the ``arguments`` it was started with."""

    scalars: dict[str, Value] = field(default_factory=dict)
    arrays: dict[str, list[Expanded]] = field(default_factory=dict)
    arguments: list[Expanded] = field(default_factory=list)

    def assign(self, word: Word, *, keep: bool) -> Value | None:
        """Evaluate an assignment; the value is kept for later words if ``keep``.

        Returns:
            The value of a scalar, ``None`` for an array.
        """
        if word.elements is not None:
            items = [item for element in word.elements for item in self.expand(element)]
            before = self.arrays.get(word.name, []) if word.append else []
            self.arrays[word.name] = [*before, *items][:_MOST]
            return None
        quoted = [piece._replace(quoted=True) for piece in word.value]  # values are not split
        value = _joined(self._fields(quoted, word.start))
        if word.append and word.name in self.scalars:
            first = self.scalars[word.name]
            value = Value(first.text + value.text, first.unresolved + value.unresolved)
        if len(value.text) > _LONGEST:
            value = Value(f"${word.name}", (word.name,))
        if keep:
            self.scalars[word.name] = value
        return value

    def expand(self, word: Word) -> list[Expanded]:
        """The words that one word becomes: none, one or several."""
        return self._fields(word.pieces, word.start)

    def _fields(self, pieces: list[Piece], start: int | Location) -> list[Expanded]:
        done: list[Expanded] = []
        text, begun = "", False
        unresolved: tuple[str, ...] = ()
        found_of = [self._expansion(p) if p.expands else None for p in pieces]
        lists = any(isinstance(found, list) for found in found_of)
        for piece, found in zip(pieces, found_of, strict=True):
            if found is None:
                # "${args[@]}" with no elements is no word at all, "" is an empty one
                text, begun = text + piece.text, begun or bool(piece.text) or not lists
                continue
            if isinstance(found, list):
                for index, item in enumerate(found):
                    if index and begun:
                        done.append(Expanded(text, unresolved, start))
                        text, unresolved = "", ()
                    if not text and not unresolved:
                        start = item.start
                    text, begun = text + item.text, True
                    unresolved += item.unresolved
                continue
            unresolved += found.unresolved
            if piece.quoted or found.unresolved:
                text, begun = text + found.text, begun or piece.quoted or bool(found.text)
                continue
            parts = re.split(r"\s+", found.text)
            for index, part in enumerate(parts):
                if index and begun:
                    done.append(Expanded(text, unresolved, start))
                    text, unresolved, begun = "", (), False
                text, begun = text + part, begun or bool(part)
        return [*done, Expanded(text, unresolved, start)] if begun else done

    def _expansion(self, piece: Piece) -> Value | list[Expanded]:
        """The value of an expansion; itself, unresolved, when only a shell could know."""
        raw = piece.text
        if _ARGUMENTS.fullmatch(raw):
            return self.arguments
        if match := _ARRAY.fullmatch(raw):
            items = self.arrays.get(match[1], [])
            return _joined(items) if match[2] == "*" and piece.quoted else items
        if match := _PLAIN.fullmatch(raw):
            if match[1] in self.scalars:
                return self.scalars[match[1]]
            if match[1] in self.arrays:
                first = self.arrays[match[1]][:1]
                return Value(first[0].text, first[0].unresolved) if first else Value("")
            return Value(raw, (match[1],))
        if match := _DEFAULT.fullmatch(raw):
            current = self.scalars.get(match[1])
            has_value = current is not None and (bool(current.text) or ":" not in match[2])
            if match[2].endswith("+"):
                return self._nested(match[3]) if has_value else Value("")
            return current if has_value and current is not None else self._nested(match[3])
        return Value(raw, (raw,))

    def _nested(self, text: str) -> Value:
        """Expand the word of ``${X:-word}``: quotes around it go, variables in it are replaced."""
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]
        unresolved: tuple[str, ...] = ()
        parts = re.split(r"(\$\{[^{}]*\}|\$[A-Za-z_]\w*|\$\(.*\))", text)
        for index in range(1, len(parts), 2):
            found = self._expansion(Piece(parts[index], quoted=True, expands=True))
            if isinstance(found, list):
                found = _joined(found)
            parts[index] = found.text
            unresolved += found.unresolved
        return Value("".join(parts), unresolved)


def _joined(items: list[Expanded]) -> Value:
    return Value(
        " ".join(item.text for item in items),
        tuple(name for item in items for name in item.unresolved),
    )
