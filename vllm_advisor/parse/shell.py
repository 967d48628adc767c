"""Bash text -> simple commands whose words know their place; nothing is run.

Covers what start scripts are made of: continuations, comments, the quoting rules, assignments and
``export``, arrays and ``"${args[@]}"``, ``${PORT:-8000}``, redirections and here-documents.
Conditions are not evaluated: every line counts as run, in order. What only a shell can know
(``$UNSET``, ``$(command)``) stays in the word as it is written and is listed in ``unresolved``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vllm_advisor.parse.shell_variables import Expanded, Value, Variables
from vllm_advisor.parse.shell_words import Word, WordReader
from vllm_advisor.types.decision import Location

_CONDITIONS = frozenset(("if", "then", "elif", "else", "fi", "case", "esac", "!"))
_KEYWORDS = _CONDITIONS | {"while", "until", "for", "do", "done", "{", "}", "time"}
_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))


class Token(NamedTuple):
    """One word of a command after expansion, and where it is written.

    ``unresolved`` names the variables and substitutions whose value is not known; their text
    stands in ``text`` as written.
    """

    text: str
    location: Location
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A simple command: its words, and the environment it is given by the script.

    ``continues`` says that it follows the previous command after nothing but a line end,
    ``background`` that the script goes on while it runs (``&``).
    """

    words: tuple[Token, ...]
    env: dict[str, Token]
    continues: bool = False
    background: bool = False


@dataclass(slots=True, kw_only=True)
class Script:
    """What a script does, as far as it can be read."""

    commands: list[Command] = field(default_factory=list)
    arrays: dict[str, list[Token]] = field(default_factory=dict)


def read_script(
    text: str,
    file: str,
    *,
    line: int = 1,
    column: int = 1,
    locate: Callable[[int], Location] | None = None,
    env: Mapping[str, Token] | None = None,
    arguments: Sequence[Token] = (),
) -> Script:
    """Read a script; text that is cut off in a quote counts as quoted to its end.

    Args:
        text: the script.
        file: its name in locations.
        line: line of the first character, for a script inside another file.
        column: column of the first character.
        locate: place of the character at an offset, where lines and columns do not follow from
            those of the first character.
        env: variables that the shell is started with.
        arguments: what ``"$@"`` stands for.
    """
    reader = _Reader(text, locate or _Lines(text, file, line, column))
    reader.start_with(env or {}, arguments)
    return reader.read()


class _Lines:
    """Places in a text that stands in a file as it is."""

    def __init__(self, text: str, file: str, line: int, column: int) -> None:
        self._file = file
        self._origin = (line, column)
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def __call__(self, offset: int) -> Location:
        row = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[row] + 1
        line, first_column = self._origin
        return Location(
            file=self._file,
            line=line + row,
            column=column + first_column - 1 if row == 0 else column,
        )


class _Reader:
    """Carries out a script's assignments in order and records its commands."""

    def __init__(self, text: str, locate: Callable[[int], Location]) -> None:
        self._words = WordReader(text).words()
        self._locate = locate
        self._variables = Variables()
        self._exported: dict[str, Token] = {}
        self._script = Script()

    def start_with(self, env: Mapping[str, Token], arguments: Sequence[Token]) -> None:
        """Set what the shell is started with."""
        for name, token in env.items():
            self._variables.scalars[name] = Value(token.text, token.unresolved)
            self._exported[name] = token
        self._variables.arguments = [
            Expanded(token.text, token.unresolved, token.location) for token in arguments
        ]

    def read(self) -> Script:
        words: list[Word] = []
        continues = False
        for word in self._words:
            if isinstance(word, Word):
                words.append(word)
                continue
            if words:
                self._finish(words, continues=continues, background=word == "&")
                words = []
                continues = word == "\n"
            elif word != "\n":
                continues = False
        for name, tokens in self._variables.arrays.items():
            self._script.arrays[name] = [self._token(*t) for t in tokens]
        return self._script

    def _finish(self, words: list[Word], *, continues: bool, background: bool) -> None:
        """Carry out assignments; record anything else as a command."""
        env = dict(self._exported)
        start = 0
        while start < len(words) and (words[start].name or words[start].literal in _KEYWORDS):
            start += 1
        assignments, rest = words[:start], words[start:]
        if rest and rest[0].literal in _DECLARATIONS:
            self._declare(rest)
            return
        for word in assignments:
            if not word.name:
                continue
            value = self._variables.assign(word, keep=not rest)
            if rest and value is not None:
                env[word.name] = self._token(*value, word.start)
            elif word.name in self._exported and value is not None:
                self._exported[word.name] = self._token(*value, word.start)
        if rest:
            expanded = [t for word in rest for t in self._variables.expand(word)]
            tokens = tuple(self._token(*t) for t in expanded)
            if tokens:  # "$@" alone may be nothing
                self._script.commands.append(
                    Command(words=tokens, env=env, continues=continues, background=background)
                )

    def _declare(self, words: list[Word]) -> None:
        exports = words[0].literal == "export" or any(w.literal == "-x" for w in words)
        for word in words[1:]:
            value = None
            if word.name:
                value = self._variables.assign(word, keep=True)
            elif word.literal in self._variables.scalars:
                value = self._variables.scalars[word.literal]
            if exports and value is not None:
                self._exported[word.name or word.literal] = self._token(*value, word.start)

    def _token(self, text: str, unresolved: tuple[str, ...], start: int | Location) -> Token:
        place = self._locate(start) if isinstance(start, int) else start
        return Token(text, place, unresolved)
