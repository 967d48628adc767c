"""Bash text -> words and the operators between them, by the shell's quoting rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_BLANK = " \t\r"
_WORD_END = " \t\r\n;&|()<>"
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_NAME = re.compile(r"\$(?:[A-Za-z_]\w*|[@*#?$!0-9-])")
_REDIRECTION = re.compile(r"(?:\d*|&)(<<<|<<-?|>>|>&|<&|>\||<>|>|<)")
_PLACEHOLDER = re.compile(r"<[A-Za-z0-9][^<>|&;\n]*(?<! )>")  # <model>, as in documentation
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class Piece(NamedTuple):
    """A part of a word: literal text, or an expansion as written (``$X``, ``${X:-1}``)."""

    text: str
    quoted: bool
    expands: bool = False


@dataclass(slots=True, kw_only=True)
class Word:
    """A word before expansion; an assignment has a ``name``, an array also ``elements``."""

    pieces: list[Piece]
    start: int
    name: str = ""
    append: bool = False
    value: list[Piece] = field(default_factory=list)
    elements: list[Word] | None = None

    @property
    def literal(self) -> str:
        """The text when nothing in it is quoted or expands, else an empty string."""
        if any(p.quoted or p.expands for p in self.pieces):
            return ""
        return "".join(p.text for p in self.pieces)


class WordReader:
    """One pass over the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._here_documents: list[str] = []

    def words(self) -> Iterator[Word | str]:
        """Words, and the operators between commands."""
        while self._pos < len(self._text):
            char = self._text[self._pos]
            if char in _BLANK:
                self._pos += 1
            elif (end := self._continuation(self._pos)) is not None:
                self._pos = end
            elif char == "#":
                self._pos = self._find("\n")
            elif char == "\n":
                self._pos += 1
                self._skip_here_documents()
                yield "\n"
            elif self._redirection():
                continue
            elif char in ";&|()":
                two = self._text[self._pos : self._pos + 2]
                operator = two if two in ("&&", "||") else char
                self._pos += len(operator)
                yield operator
            else:
                yield self._word()
        yield "\n"

    def _word(self) -> Word:
        start = self._pos
        pieces: list[Piece] = []
        while self._pos < len(self._text):
            char = self._text[self._pos]
            if (end := self._continuation(self._pos)) is not None:
                self._pos = end
            elif char == "<" and (match := _PLACEHOLDER.match(self._text, self._pos)):
                pieces.append(Piece(match[0], quoted=True, expands=True))
                self._pos = match.end()
            elif char in _WORD_END:
                break
            elif char == "'":
                end = self._find("'", self._pos + 1)
                pieces.append(Piece(self._text[self._pos + 1 : end], quoted=True))
                self._pos = end + 1
            elif char == '"':
                self._pos += 1
                pieces += self._double_quoted()
            elif char == "\\":
                pieces.append(Piece(self._text[self._pos + 1 : self._pos + 2], quoted=True))
                self._pos += 2
            elif char in "$`":
                pieces.append(self._dollar(quoted=False))
            else:
                pieces.append(Piece(char, quoted=False))
                self._pos += 1
        return self._assignment(start, pieces)

    def _assignment(self, start: int, pieces: list[Piece]) -> Word:
        """Recognise ``NAME=value``, ``NAME+=value`` and ``NAME=( ... )``."""
        literal = ""
        for piece in pieces:
            if piece.quoted or piece.expands:
                break
            literal += piece.text
        match = _ASSIGNMENT.match(literal)
        if match is None:
            return Word(pieces=pieces, start=start)
        value = pieces[match.end() :]  # unquoted literal pieces hold one character each
        elements = None
        if not value and self._text[self._pos : self._pos + 1] == "(":
            self._pos += 1
            elements = []
            for word in self.words():
                if word == ")":
                    break
                if isinstance(word, Word):
                    elements.append(word)
        return Word(
            pieces=pieces, start=start, name=match[1], append=bool(match[2]),
            value=value, elements=elements,
        )  # fmt: skip

    def _double_quoted(self) -> list[Piece]:
        pieces = [Piece("", quoted=True)]
        while self._pos < len(self._text) and self._text[self._pos] != '"':
            char = self._text[self._pos]
            following = self._text[self._pos + 1 : self._pos + 2]
            if (end := self._continuation(self._pos)) is not None:
                self._pos = end
            elif char == "\\" and following in ("$", "`", '"', "\\"):
                pieces.append(Piece(following, quoted=True))
                self._pos += 2
            elif char in "$`":
                pieces.append(self._dollar(quoted=True))
            else:
                pieces.append(Piece(char, quoted=True))
                self._pos += 1
        self._pos += 1
        return pieces

    def _dollar(self, *, quoted: bool) -> Piece:
        """A variable, a substitution, ``$'...'`` or a dollar sign that means nothing."""
        start = self._pos
        opener = self._text[start : start + 2]
        if self._text[start] == "`":
            self._pos = self._find("`", start + 1) + 1
        elif opener in ("${", "$("):
            self._pos = self._balanced(start + 1)
        elif opener == "$'" and not quoted:
            return self._ansi_c_quoted()
        elif match := _NAME.match(self._text, start):
            self._pos = match.end()
        else:
            self._pos += 1
            return Piece("$", quoted=quoted)
        return Piece(self._text[start : self._pos], quoted=quoted, expands=True)

    def _ansi_c_quoted(self) -> Piece:
        match = _ANSI_C.match(self._text, self._pos)
        assert match is not None  # noqa: S101  (the caller saw $')
        self._pos = match.end()
        text = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), match[1], flags=re.DOTALL)
        return Piece(text, quoted=True)

    def _balanced(self, start: int) -> int:
        """Position after the bracket that closes the one at ``start``; quotes are skipped."""
        opening = self._text[start]
        closing = {"{": "}", "(": ")"}[opening]
        depth, pos = 0, start
        while pos < len(self._text):
            char = self._text[pos]
            if char == "\\":
                pos += 1
            elif char == "'" and opening == "(":
                pos = self._find("'", pos + 1)
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    return pos + 1
            pos += 1
        return len(self._text)

    def _redirection(self) -> bool:
        """Skip a redirection and its target; remember the end mark of a here-document."""
        match = _REDIRECTION.match(self._text, self._pos)
        if match is None or _PLACEHOLDER.match(self._text, self._pos):
            return False
        self._pos = match.end()
        while self._text[self._pos : self._pos + 1] in (" ", "\t"):
            self._pos += 1
        target = self._word()
        if match[1] in ("<<", "<<-"):
            self._here_documents.append("".join(p.text for p in target.pieces))
        return True

    def _skip_here_documents(self) -> None:
        for mark in self._here_documents:
            end = re.compile(rf"^\t*{re.escape(mark)}\r?$", re.MULTILINE)
            match = end.search(self._text, self._pos)
            self._pos = match.end() if match else len(self._text)
        self._here_documents.clear()

    def _continuation(self, pos: int) -> int | None:
        """Position after a backslash and a line end, if they stand at ``pos``."""
        for joint in ("\\\n", "\\\r\n"):
            if self._text.startswith(joint, pos):
                return pos + len(joint)
        return None

    def _find(self, what: str, start: int | None = None) -> int:
        found = self._text.find(what, self._pos if start is None else start)
        return len(self._text) if found < 0 else found
