"""A Compose file as Compose sees it: YAML with its merges, then variables put in.

The rules of variables are those of the Compose specification (12-interpolation.md): ``$$`` is a
dollar, ``$NAME`` and ``${NAME}`` the variable, ``:-`` and ``-`` a default, ``:?`` and ``?`` an error
where there is none; only values are looked at, never keys. Nested variables are not written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from judges.compose import docker_compose

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:?[-?])(?P<rest>[^}]*))?\}"
    r"|(?P<wrong>\{))"
)


class MissingVariableError(ValueError):
    """A variable that has to be given is not."""


def read_project(text: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The project, every variable replaced.

    Raises:
        MissingVariableError: one that is asked for with ``?`` is not there.
        ValueError: ``${`` that begins no variable.
    """
    return interpolated(yaml.safe_load(text), variables)


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: interpolated(below, variables) for key, below in value.items()}
    if isinstance(value, list):
        return [interpolated(below, variables) for below in value]
    return _replaced(value, variables) if isinstance(value, str) else value


def _replaced(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        if match["wrong"]:
            raise ValueError(f"invalid interpolation format for {text!r}")
        name, how = match["name"] or match["braced"], match["how"] or ""
        found = variables.get(name)
        missing = found is None or (how.startswith(":") and found == "")
        if missing and how.endswith("?"):
            raise MissingVariableError(f"{name}: {match['rest']}")
        if missing and how.endswith("-"):
            return match["rest"]
        return found or ""

    return _VARIABLE.sub(value, text)


def docker_project(folder: Path) -> dict[str, Any] | None:
    """The project as ``docker compose`` reads it; None where that is not installed.

    Raises:
        ValueError: Docker refuses the file.
    """
    done = docker_compose("-f", str(folder / "compose.yaml"), "config", "--format", "json")
    if done is None:
        return None
    if done.returncode:
        raise ValueError(done.stderr)
    return interpolated(json.loads(done.stdout), {})  # what it prints is written to be read again
