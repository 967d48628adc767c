"""The words a container is started with -> the server in them.

For whatever names a command as a list of words, a Kubernetes container or a Compose service alike:
the command itself, one behind a wrapper, or the text that it gives to a shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from packaging.version import Version

from vllm_advisor.parse.images import SERVE_FROM, EngineOf, Image
from vllm_advisor.parse.parsed_command import (
    API_SERVER,
    VLLM_SERVE,
    ParsedCommand,
    parse_serve_command,
    server_in,
)
from vllm_advisor.parse.placed import PlacedText
from vllm_advisor.parse.remarks import Problem
from vllm_advisor.parse.shell import Command, Token, read_script
from vllm_advisor.parse.shell_servers import bare_arguments, servers_in, shell_servers
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineFacts

_SHELLS = frozenset(("sh", "bash", "ash", "dash", "zsh"))
_TEXT_OPTION = re.compile(r"-[a-zA-Z]*c")
# A text that begins with a flag or a program, or has a flag in it, and is no JSON.
_SEVERAL_WORDS = re.compile(
    r"\s*(?![{\[])(?:-|vllm\s|\S*python[\d.]*\s|\S+\s(?:.*\s)?--?[A-Za-z])", re.DOTALL
)


class Words(NamedTuple):
    """A command or its arguments as written; ``listed`` unless it is a text instead of a list."""

    texts: tuple[PlacedText, ...]
    listed: bool = True


def server_of(
    command: Words,
    args: Words,
    *,
    env: Mapping[str, Token],
    image: Image | None,
    engine_of: EngineOf,
    assume: bool,
    where: Location,
) -> ParsedCommand | None:
    """The server that a container starts; None where it starts none.

    Args:
        command: what replaces the image's entrypoint; empty where nothing does.
        args: what follows it.
        env: the container's variables.
        image: the image it runs in.
        engine_of: facts of the version that an image states.
        assume: whether arguments without a known command are those of a server.
        where: place of the container, for a command without any word.
    """
    start, problems = _split("command", command)
    if not any(PurePosixPath(text.text).name in _SHELLS for text in start[:2]):
        rest, more = _split("args", args)
        problems += more
    else:  # one text is what a shell takes
        rest = args.texts
    texts = [*start, *rest]
    words = [text.token() for text in texts]
    found = _found(words, texts, env, lambda inner: engine_of(inner or image))
    if found is None:
        serves = image is not None and image.serves
        if command.texts or not (serves or assume):
            return None
        if not image and words and not any(word.text.startswith("--") for word in words):
            return None
        found = parse_serve_command(
            words,
            engine_of(image),
            complete=image is not None,
            assumed=image.server if image else _likely_server(words, engine_of(None)),
            where=where,
        )
    elif image is not None and image.official and not command.texts:
        problems += _entrypoint_twice(words, image)
    return replace(
        found,
        env={**{name: token.text for name, token in env.items()}, **found.env},
        env_locations={
            **{name: token.location for name, token in env.items()},
            **found.env_locations,
        },
        image=image.text if image else found.image,
        problems=(*problems, *found.problems),
    )


def _likely_server(words: list[Token], engine: EngineFacts) -> str:
    """The server that gets arguments of which no image is known."""
    old = Version(engine.version) < SERVE_FROM
    named = any(word.text.partition("=")[0] == "--model" for word in words)
    return API_SERVER if old and named else VLLM_SERVE


def _split(key: str, words: Words) -> tuple[tuple[PlacedText, ...], tuple[Problem, ...]]:
    """Words as they are, or those of one text that should have been several, which is told."""
    if len(words.texts) != 1:
        return words.texts, ()
    (text,) = words.texts
    if words.listed and not (_SEVERAL_WORDS.match(text.text) and len(text.words()) > 1):
        return words.texts, ()
    says = f"{key} is one text: nothing splits it into words"
    if words.listed:
        says = f"{key} has one item, {text.text.strip()[:60]!r}: nothing splits it into words"
    fix = "write each flag and each value as an item of its own, or run the text with sh -c"
    problem = Problem(says, text.location, f"{key}-as-one-string", fix)
    return tuple(text.words()), (problem,)


def _found(
    words: list[Token], texts: list[PlacedText], env: Mapping[str, Token], engine_of: EngineOf
) -> ParsedCommand | None:
    """The server that the words name themselves."""
    if not texts:
        return None
    script = _shell_text(words)
    if script is None:
        here = Command(words=tuple(words), env=dict(env))
        servers = servers_in(here, engine_of)
        return servers[0].command if servers else None
    read = read_script(
        words[script].text,
        texts[script].file,
        locate=texts[script].locate,
        env=env,
        arguments=words[script + 2 :],
    )
    servers = shell_servers(read, engine_of) or bare_arguments(read, engine_of)
    return servers[0].command if servers else None


def _shell_text(words: list[Token]) -> int | None:
    """Which word is the text for a shell, where the command is one."""
    start = next(
        (i for i, w in enumerate(words[:4]) if PurePosixPath(w.text).name in _SHELLS), None
    )
    if start is None:
        return None
    takes_text = False
    for index in range(start + 1, len(words)):
        text = words[index].text
        if not text.startswith("-"):
            return index if takes_text else None
        takes_text = takes_text or _TEXT_OPTION.fullmatch(text) is not None
    return None


def _entrypoint_twice(words: list[Token], image: Image) -> tuple[Problem, ...]:
    """Arguments that repeat the command of an image which starts the server by itself."""
    if not words or server_in(words[:5]) is None:
        return ()
    says = f"{image.repository} starts `{image.server}` itself and gets these words as arguments"
    return (
        Problem(
            says,
            words[0].location,
            "entrypoint-repeated",
            "give the model and the flags alone, or set the command too",
        ),
    )
