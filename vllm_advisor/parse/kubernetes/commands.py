"""The command of a container in a manifest, as Kubernetes joins and expands it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vllm_advisor.parse.container import Container
from vllm_advisor.parse.container_command import Words, server_of
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.parsed_command import ParsedCommand
from vllm_advisor.parse.placed import PlacedText
from vllm_advisor.parse.shell import Token
from vllm_advisor.parse.yaml_tree import YamlValue

_VARIABLE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)")


def command_of(
    view: YamlValue,
    container: Container,
    engine_of: EngineOf,
    *,
    given: Mapping[str, str],
    assume: bool,
) -> ParsedCommand | None:
    """The server that a container starts; None where it starts none.

    Args:
        view: the container, or a list of arguments alone.
        container: what was read of it.
        engine_of: facts of the version that an image states.
        given: variables that the pods' controller sets, as far as their values are known.
        assume: whether arguments alone are those of a server.
    """
    env = environment(container, given)
    listed = isinstance(view.value, list)
    return server_of(
        Words(()) if listed else words_at(view.at("command"), env),
        words_at(view if listed else view.at("args"), env),
        env=env,
        image=container.image,
        engine_of=engine_of,
        assume=assume,
        where=view.location,
    )


def environment(container: Container, given: Mapping[str, str]) -> dict[str, Token]:
    """The container's variables that have a value, each expanded with those before it."""
    env = {name: Token(value, container.location) for name, value in given.items()}
    for one in container.env:
        if one.value is None:  # known in the cluster only
            env[one.name] = Token(f"$({one.name})", one.location, (one.name,))
        else:
            env[one.name] = expanded(PlacedText.at_place(one.value, one.location), env).token()
    return env


def expanded(text: PlacedText, env: Mapping[str, Token]) -> PlacedText:
    """A text with ``$(NAME)`` put in; names that nothing defines are left, as unresolved."""

    def value(match: re.Match[str]) -> str | None:
        if match["name"] is None:
            return "$"
        token = env.get(match["name"])
        return None if token is None or token.unresolved else token.text

    return text.replaced(_VARIABLE, value)


def words_at(view: YamlValue, env: Mapping[str, Token]) -> Words:
    """The words of ``command`` or ``args``, which should be a list."""
    if isinstance(view.value, list):
        texts = (text for item in view.items() if (text := item.placed_text()) is not None)
        return Words(tuple(expanded(text, env) for text in texts))
    text = view.placed_text()
    if text is None or view.value is None:
        return Words(())
    return Words((expanded(text, env),), listed=False)
