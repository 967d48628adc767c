"""``vllm serve`` commands -> their arguments, read as vLLM's own parser reads them.

Nothing a person writes raises here: what vLLM would refuse or misread becomes a :class:`Problem`,
what it does not know an :class:`UnknownFlag`, what only the shell knows a :class:`Unresolved`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from vllm_advisor.errors import InputError
from vllm_advisor.parse.flag_reader import FlagReader
from vllm_advisor.parse.remarks import Note, Problem, UnknownFlag, Unresolved
from vllm_advisor.parse.shell import Command, Script, Token, read_script
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArgs, EngineFacts

__all__ = [
    "Note",
    "ParsedCommand",
    "Problem",
    "Token",
    "UnknownFlag",
    "Unresolved",
    "parse_serve_command",
    "parse_shell_script",
]

_API_SERVER = "vllm.entrypoints.openai.api_server"
_DEMO_SERVER = "vllm.entrypoints.api_server"
_IMAGE = re.compile(r"(?:^|/)vllm-openai(?:-[\w.-]+)?(?:[:@].*)?$")
_ENV = re.compile(r"(?:--env=)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_TALK = frozenset(("echo", "printf", "which", "command", "pip", "pip3", "grep", "pgrep", "pkill"))
_RUNS_TEXT = frozenset(("eval", "ssh", "tmux", "screen", "su"))
_SHELL_TEXT_OPTION = re.compile(r"-[a-z]*c")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """One command that starts a server.

    ``model`` is vLLM's default model when the command names none, and empty when it stands in the
    file of ``--config`` or when there are only arguments without a command. ``env`` holds what the
    command or the script sets, ``image`` the container image it runs in. ``engine_args`` leaves
    out values that are unresolved or cannot be converted.
    """

    model: str
    engine_args: EngineArgs
    location: Location
    entrypoint: str = "vllm serve"
    env: dict[str, str]
    env_locations: dict[str, Location]
    image: str = ""
    unknown: tuple[UnknownFlag, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()


def parse_serve_command(
    tokens: Iterable[Token | tuple[str, Location]],
    engine: EngineFacts,
    *,
    env: dict[str, Token] | None = None,
    image: str = "",
    complete: bool = True,
) -> ParsedCommand:
    """Read one command.

    Args:
        tokens: words with their places: ``vllm serve MODEL ...``, ``python -m
            vllm.entrypoints.openai.api_server ...``, or the arguments alone, as a container gets
            them.
        engine: flags of the vLLM version that reads the command.
        env: environment variables the command is given.
        image: container image it runs in.
        complete: ``False`` for a part of a command, which need not name the model.
    """
    words = [Token(*token) for token in tokens]
    where = words[0].location if words else Location(file="", line=1)
    entrypoint, start = _entrypoint(words) or ("vllm serve", 0)
    reader = FlagReader(engine, serve=entrypoint == "vllm serve", complete=complete)
    reader.read(words[start:], where)
    if entrypoint == _DEMO_SERVER:
        reader.problems.append(
            Problem(
                f"{_DEMO_SERVER} is a demonstration server without the OpenAI API",
                where,
                code="wrong-entrypoint",
                fix="vllm serve MODEL",
            )
        )
    env = env or {}
    return ParsedCommand(
        model=reader.model,
        engine_args=EngineArgs(
            model=reader.model,
            args=tuple(reader.arguments.values()),
            model_origin=reader.model_location,
        ),
        location=where,
        entrypoint=entrypoint,
        env={name: token.text for name, token in env.items()},
        env_locations={name: token.location for name, token in env.items()},
        image=image,
        unknown=tuple(reader.unknown),
        problems=tuple(reader.problems),
        notes=tuple(reader.notes),
        unresolved=tuple(reader.unresolved),
    )


def parse_shell_script(text: str, file: str, engine: EngineFacts) -> list[ParsedCommand]:
    """Read every command of a script that starts a server.

    Raises:
        InputError: the script has none.
    """
    script = read_script(text, file)
    commands = _serve_commands(script, engine) or _bare_arguments(script, engine)
    if not commands:
        raise InputError(
            "no vllm command found",
            where=file,
            fix="the text should have a line such as: vllm serve MODEL --max-model-len 32K",
        )
    return commands


def _serve_commands(script: Script, engine: EngineFacts) -> list[ParsedCommand]:
    found: list[ParsedCommand] = []
    previous: ParsedCommand | None = None
    for command in script.commands:
        first = command.words[0]
        if previous is not None and command.continues and first.text.startswith("-"):
            _lost_line(found, first)
            continue
        parsed = _commands_in(command, engine)
        previous = parsed[-1] if parsed else None
        found += parsed
    return found


def _commands_in(command: Command, engine: EngineFacts) -> list[ParsedCommand]:
    """The server a simple command starts: itself, in a container, or in the text for a shell."""
    words = list(command.words)
    if words[0].text in _TALK:
        return []
    if words[-1].text == " ":  # a backslash before a blank, meant to continue the line
        words.pop()
    env = dict(command.env)
    for index in range(len(words)):
        if _entrypoint(words[index:]) is not None:
            env.update(_environment(words[:index]))
            image = next((w.text for w in words[:index] if _IMAGE.search(w.text)), "")
            return [parse_serve_command(words[index:], engine, env=env, image=image)]
    for index, word in enumerate(words):
        is_text = index > 0 and _SHELL_TEXT_OPTION.fullmatch(words[index - 1].text) is not None
        if (is_text or words[0].text in _RUNS_TEXT) and "vllm" in word.text:
            place = word.location
            inner = read_script(word.text, place.file, line=place.line, column=place.column + 1)
            if found := _serve_commands(inner, engine):
                return found
    for index, word in enumerate(words):
        if index and _IMAGE.search(word.text):
            env.update(_environment(words[:index]))
            return [parse_serve_command(words[index + 1 :], engine, env=env, image=word.text)]
    return []


def _bare_arguments(script: Script, engine: EngineFacts) -> list[ParsedCommand]:
    """Arguments without a command: an array of them, or lines that begin with a flag."""
    groups = [tuple(array) for array in script.arrays.values()]
    groups += [command.words for command in script.commands]
    return [
        parse_serve_command(words, engine, complete=False)
        for words in groups
        if words and words[0].text.startswith("--")
    ]


def _lost_line(found: list[ParsedCommand], first: Token) -> None:
    """Tell the last command that the line after it was meant to belong to it."""
    last = found[-1]
    problem = Problem(
        f"{first.text} begins a new command: the line before it does not end in a backslash",
        first.location,
        code="line-continuation-missing",
        fix="end every line but the last in a backslash with nothing after it, "
        "and put no comment between",
    )
    found[-1] = replace(last, problems=(*last.problems, problem))


def _entrypoint(words: list[Token]) -> tuple[str, int] | None:
    """The server ``words`` begin with, and where its arguments begin."""
    texts = [word.text for word in words[:3]]
    if len(texts) > 1 and PurePosixPath(texts[0]).name == "vllm" and texts[1] == "serve":
        return "vllm serve", 2
    if len(texts) > 1 and texts[0] == "-m":
        if texts[1] in (_API_SERVER, _DEMO_SERVER):
            return texts[1], 2
        if texts[1].startswith("vllm.entrypoints.cli") and texts[2:] == ["serve"]:
            return "vllm serve", 3
    if texts and PurePosixPath(texts[0]).name.startswith("python"):
        inner = _entrypoint(words[1:])
        return (inner[0], inner[1] + 1) if inner else None
    return None


def _environment(words: list[Token]) -> dict[str, Token]:
    """``NAME=value`` words before a command: of ``env`` or of a container's ``-e``."""
    found = {}
    for word in words:
        if match := _ENV.fullmatch(word.text):
            found[match[1]] = word._replace(text=match[2])
    return found
