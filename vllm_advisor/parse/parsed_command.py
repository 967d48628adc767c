"""One command that starts a server -> its model and arguments, as vLLM's own parser reads them.

Nothing a person writes raises here: what vLLM would refuse or misread becomes a :class:`Problem`,
what it does not know an :class:`UnknownFlag`, what only the shell knows an :class:`Unresolved`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from vllm_advisor.parse.flag_reader import FlagReader
from vllm_advisor.parse.remarks import Note, Problem, UnknownFlag, Unresolved
from vllm_advisor.parse.shell import Token
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArgs, EngineFacts

VLLM_SERVE = "vllm serve"
API_SERVER = "vllm.entrypoints.openai.api_server"
_DEMO_SERVER = "vllm.entrypoints.api_server"


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
    entrypoint: str = VLLM_SERVE
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
    assumed: str = VLLM_SERVE,
    where: Location | None = None,
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
        assumed: the server that gets arguments without a command: that of the image.
        where: place of a command without any word.
    """
    words = [Token(*token) for token in tokens]
    if words:
        where = words[0].location
    where = where or Location(file="", line=1)
    entrypoint, start = server_in(words) or (assumed, 0)
    reader = FlagReader(engine, serve=entrypoint == VLLM_SERVE, complete=complete)
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


def server_in(words: Sequence[Token]) -> tuple[str, int] | None:
    """The server ``words`` begin with, and where its arguments begin."""
    texts = [word.text for word in words[:3]]
    if len(texts) > 1 and PurePosixPath(texts[0]).name == "vllm" and texts[1] == "serve":
        return VLLM_SERVE, 2
    if len(texts) > 1 and texts[0] == "-m":
        if texts[1] in (API_SERVER, _DEMO_SERVER):
            return texts[1], 2
        if texts[1].startswith("vllm.entrypoints.cli") and texts[2:] == ["serve"]:
            return VLLM_SERVE, 3
    if texts and PurePosixPath(texts[0]).name.startswith("python"):
        inner = server_in(words[1:])
        return (inner[0], inner[1] + 1) if inner else None
    return None
