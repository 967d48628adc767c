"""Options read without typer's adapters mean the same, and wrong ones get typer's own messages."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from vllm_advisor.cli.plain_values import PlainCommand

WORDS = [
    ["x"],
    ["x", "y", "--count", "3"],
    ["x", "--count", "0"],
    ["x", "--count", "-1"],
    ["x", "--count", "9"],
    ["x", "--count", "two"],
    ["x", "--count", "3.5"],
    ["x", "--colour", "blue"],
    ["x", "--colour", "green"],
    ["x", "--share", "0.5"],
    ["x", "--share", "half"],
    ["x", "--item", "a=1", "--item", "b"],
    ["x", "--on", "--name", ""],
    ["x", "--name"],
    ["x", "--unknown"],
    [],
    ["--help"],
]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def command(  # noqa: PLR0917 - the command line of a test
    words: Annotated[list[str], typer.Argument()],
    count: Annotated[int, typer.Option(min=1, max=8)] = 1,
    least: Annotated[int | None, typer.Option(min=1)] = None,
    colour: Annotated[Colour, typer.Option()] = Colour.RED,
    share: Annotated[float | None, typer.Option()] = None,
    item: Annotated[list[str] | None, typer.Option()] = None,
    name: Annotated[str | None, typer.Option()] = None,
    on: Annotated[bool, typer.Option("--on")] = False,  # noqa: FBT002
) -> None:
    typer.echo(repr((words, count, least, colour, share, item, name, on)))


def result(words: list[str], cls: type[typer.core.TyperCommand] | None) -> tuple[int, str]:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(cls=cls)(command)
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


@pytest.mark.parametrize("words", [*WORDS, ["x", "--least", "0"], ["x", "--least", "12"]], ids=repr)
def test_the_same_as_typer(words: list[str]) -> None:
    code, said = result(words, None)
    assert result(words, PlainCommand) == (code, said.replace("Value error, ", ""))
