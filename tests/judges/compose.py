"""Compose files, by two readers: the compose-spec parser and, where there is one, Docker's own.

What that parser leaves out is looked at here: named volumes, depends_on and interpolation.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import compose_spec

# $$, $NAME, ${NAME} with :-, :?, :+ and their like; any other dollar is an error to Compose.
DOLLAR = re.compile(r"\$(?!\$|[A-Za-z_]|\{[A-Za-z_]\w*(?:\}|:?[-?+]))")


def compose_problems(text: str) -> list[str]:
    """What Compose refuses: unknown fields, types, names that nothing defines, stray dollars."""
    try:
        read = compose_spec.PyCompose.from_yaml(text)
        read.validate()
    except ValueError as refused:
        return [str(refused)]
    return list(undefined(read.to_dict()))


def undefined(project: dict[str, Any]) -> Iterator[str]:
    """Names that nothing defines, and what Compose would take for a variable but cannot."""
    for name, service in project["services"].items():
        for wanted in service.get("depends_on", ()):
            if wanted not in project["services"]:
                yield f"services.{name}.depends_on: no service {wanted}"
        for volume in service.get("volumes", ()):
            source = volume_of(volume)
            if source and source not in project.get("volumes", {}):
                yield f"services.{name}.volumes: no volume {source}"
        for value in strings(service):
            if DOLLAR.search(value.replace("$$", "")):
                yield f"services.{name}: invalid interpolation in {value!r}"


def volume_of(mount: str | dict[str, Any]) -> str:
    """The named volume of a mount; empty for paths and volumes without a name."""
    if isinstance(mount, dict):
        return mount.get("source", "") if mount["type"] == "volume" else ""
    source, separator, _ = mount.partition(":")
    return source if separator and not source.startswith((".", "/", "~", "$")) else ""


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from strings(below)


def docker_problems(text: str) -> list[str] | None:
    """What ``docker compose config`` says; None where Docker or its compose plugin is missing."""
    done = docker_compose("-f", "-", "config", "--quiet", text=text)
    if done is None:
        return None
    return done.stderr.strip().splitlines() if done.returncode else []


def docker_compose(*words: str, text: str = "") -> subprocess.CompletedProcess[str] | None:
    """``docker compose`` with a file on its standard input, or None where it is missing."""
    try:
        present = subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False, timeout=60
        )
    except FileNotFoundError:
        return None
    if present.returncode:
        return None
    return subprocess.run(
        ["docker", "compose", *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
