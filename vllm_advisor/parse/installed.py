"""Packages that a script installs with pip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement

from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.shell import Command, Token

_PIP = ("pip", "pip3")
_WITH_VALUE = frozenset((
    "-c", "--constraint", "-e", "--editable", "--extra-index-url", "-f", "--find-links", "-i",
    "--index-url", "-r", "--requirement", "-t", "--target", "--prefix", "--torch-backend",
))  # fmt: skip


def installed(commands: Sequence[Command]) -> tuple[Placed[Requirement], ...]:
    """What ``pip install`` and ``uv pip install`` are given by name, in order."""
    return tuple(one for command in commands for one in _requirements(command.words))


def _requirements(words: Sequence[Token]) -> Iterator[Placed[Requirement]]:
    texts = [PurePosixPath(word.text).name for word in words]
    at = next((i for i, text in enumerate(texts) if text in _PIP), None)
    if at is None or texts[at + 1 : at + 2] != ["install"]:
        return
    value = False
    for word in words[at + 2 :]:
        if value or word.text.startswith("-"):
            value = not value and word.text in _WITH_VALUE
            continue
        try:
            yield Placed(Requirement(word.text), word.location)
        except InvalidRequirement:
            continue  # a path, an address, a variable
