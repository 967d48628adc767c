"""The commands of a shell script that start a server: by themselves, in a container, in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from vllm_advisor.parse.images import EngineOf, Image, read_image
from vllm_advisor.parse.parsed_command import ParsedCommand, parse_serve_command, server_in
from vllm_advisor.parse.remarks import Problem
from vllm_advisor.parse.shell import Command, Script, Token, read_script

_IMAGE = re.compile(r"(?:^|/)vllm-openai(?:-[\w.-]+)?(?:[:@].*)?$")
_ENV = re.compile(r"(?:--env=)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_TALK = frozenset(("echo", "printf", "which", "command", "pip", "pip3", "grep", "pgrep", "pkill"))
_RUNS_TEXT = frozenset(("eval", "ssh", "tmux", "screen", "su"))
_DETACHED = re.compile(r"-[a-zA-Z]*d[a-zA-Z]*|--detach")
_SHELL_TEXT_OPTION = re.compile(r"-[a-z]*c")


class ShellServer(NamedTuple):
    """One command that starts a server.

    ``before`` are the words in front of it, among them those of ``docker run``; ``image`` is the
    container image it names. ``background`` says that the script goes on while it runs.
    """

    command: ParsedCommand
    before: tuple[Token, ...] = ()
    image: Image | None = None
    background: bool = False


def shell_servers(script: Script, engine_of: EngineOf) -> list[ShellServer]:
    """Every server that a script starts, in the order of its lines."""
    found: list[ShellServer] = []
    previous: ShellServer | None = None
    for command in script.commands:
        first = command.words[0]
        if previous is not None and command.continues and first.text.startswith("-"):
            found[-1] = _with_lost_line(found[-1], first)
            continue
        here = servers_in(command, engine_of)
        previous = here[-1] if here else None
        found += here
    return found


def servers_in(command: Command, engine_of: EngineOf) -> list[ShellServer]:
    """The server that a simple command starts: itself, in a container, or in a text for a shell."""
    words = list(command.words)
    if words[0].text in _TALK:
        return []
    if words[-1].text == " ":  # a backslash before a blank, meant to continue the line
        words.pop()
    for index in range(len(words)):
        if server_in(words[index : index + 5]) is not None:
            named = next((w for w in words[:index] if _IMAGE.search(w.text)), None)
            return [_server(words[:index], named, words[index:], command, engine_of)]
    for index, word in enumerate(words):
        is_text = index > 0 and _SHELL_TEXT_OPTION.fullmatch(words[index - 1].text) is not None
        if (is_text or words[0].text in _RUNS_TEXT) and "vllm" in word.text:
            place = word.location
            inner = read_script(word.text, place.file, line=place.line, column=place.column + 1)
            if found := shell_servers(inner, engine_of):
                return found
    for index, word in enumerate(words):
        if index and _IMAGE.search(word.text):
            return [_server(words[:index], word, words[index + 1 :], command, engine_of)]
    return []


def bare_arguments(script: Script, engine_of: EngineOf) -> list[ShellServer]:
    """Arguments without a command: an array of them, or lines that begin with a flag."""
    groups = [tuple(array) for array in script.arrays.values()]
    groups += [command.words for command in script.commands]
    return [
        ShellServer(parse_serve_command(words, engine_of(None), complete=False))
        for words in groups
        if words and words[0].text.startswith("--")
    ]


def _server(
    before: Sequence[Token],
    image_word: Token | None,
    words: Sequence[Token],
    command: Command,
    engine_of: EngineOf,
) -> ShellServer:
    image = read_image(image_word.text, image_word.location) if image_word else None
    parsed = parse_serve_command(
        words,
        engine_of(image),
        env={**command.env, **_environment(before)},
        image=image.text if image else "",
    )
    if not words and image_word is not None:
        parsed = replace(parsed, location=image_word.location)
    background = command.background or any(_DETACHED.fullmatch(word.text) for word in before)
    return ShellServer(parsed, tuple(before), image, background)


def _with_lost_line(server: ShellServer, first: Token) -> ShellServer:
    """Tell a command that the line after it was meant to belong to it."""
    problem = Problem(
        f"{first.text} begins a new command: the line before it does not end in a backslash",
        first.location,
        code="line-continuation-missing",
        fix="end every line but the last in a backslash with nothing after it, "
        "and put no comment between",
    )
    command = server.command
    return server._replace(command=replace(command, problems=(*command.problems, problem)))


def _environment(words: Sequence[Token]) -> dict[str, Token]:
    """``NAME=value`` words before a command: of ``env`` or of a container's ``-e``."""
    found = {}
    for word in words:
        if match := _ENV.fullmatch(word.text):
            found[match[1]] = word._replace(text=match[2])
    return found
