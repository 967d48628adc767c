"""systemd units: the servers of their ``ExecStart`` lines, with the unit's environment.

Continued lines, several settings of one name, quotes and ``$NAME`` are read as in systemd.service
and systemd.exec: ``${NAME}`` is one word or a part of one, ``$NAME`` alone is split into words, and
no shell is involved unless the command is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.parse.deployed import Deployed
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.placed import PlacedText, Span
from vllm_advisor.parse.remarks import Note
from vllm_advisor.parse.shell import Command, Token
from vllm_advisor.parse.shell_servers import servers_in
from vllm_advisor.parse.shell_source import shell_instance

KIND = "systemd"
_SETTING = re.compile(r"\s*([A-Za-z]+)\s*=\s*")
_PREFIX = re.compile(r"[-@:+!|]*")
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_]\w*)\})")
_WHOLE_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_STARTS = ("ExecStart",)


def read_systemd(text: str, file: str, engine_of: EngineOf) -> Deployed:
    """The servers that a unit starts; a part of a unit, without its sections, will do."""
    env: dict[str, Token] = {}
    starts: list[PlacedText] = []
    notes: list[Note] = []
    for name, value in _settings(text, file):
        if name == "Environment":
            for word in value.words():
                key, equals, given = word.text.partition("=")
                if equals:
                    env[key] = Token(given, word.location)
        elif name == "EnvironmentFile":
            says = f"the variables in EnvironmentFile are not read: {value.text}"
            notes.append(Note(says, value.location))
        elif name in _STARTS:
            starts.append(value)
    instances = [
        shell_instance(server, KIND)
        for start in starts
        if (words := _expanded(start, env))
        for server in servers_in(Command(words=tuple(words), env=env), engine_of)
    ]
    return Deployed(kind=KIND, file=file, instances=tuple(instances), notes=tuple(notes))


def _settings(text: str, file: str) -> Iterator[tuple[str, PlacedText]]:
    """Every ``Name=value`` with the lines that continue it."""
    parts: list[tuple[str, int, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("#", ";")):
            continue  # also between continued lines
        continued = line.endswith("\\")
        parts.append((line[:-1] if continued else line, number, 1))
        if continued:
            continue
        yield from _setting(parts, file)
        parts = []
    yield from _setting(parts, file)


def _setting(parts: list[tuple[str, int, int]], file: str) -> Iterator[tuple[str, PlacedText]]:
    text, spans = "", list[Span]()
    for line, number, column in parts:
        spans.append(Span(len(text), number, column))
        text += f"{line} "  # a backslash at the end of a line is a blank
    match = _SETTING.match(text)
    if match is not None:
        whole = PlacedText(text, file, tuple(spans))
        yield match[1], whole.part(match.end(), len(text.rstrip()))


def _expanded(start: PlacedText, env: dict[str, Token]) -> list[Token]:
    prefix = _PREFIX.match(start.text)
    begun = prefix.end() if prefix else 0

    def value(match: re.Match[str]) -> str | None:
        if match["name"] is None:
            return "$"
        return env[match["name"]].text if match["name"] in env else None

    words: list[Token] = []
    for word in start.part(begun, max(begun, len(start.text))).words():
        whole = _WHOLE_VARIABLE.fullmatch(word.text)
        if whole is None:
            filled = word.replaced(_VARIABLE, value)
            words.append(filled.token()._replace(text=filled.text.replace("%%", "%")))
        elif whole[1] in env:
            inner = PlacedText.at_place(env[whole[1]].text, env[whole[1]].location)
            words += [part.token() for part in inner.words()]
        else:
            words.append(Token(word.text, word.location, (whole[1],)))
    return words
