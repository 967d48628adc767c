"""Formats, standard input and messages shared by the commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any, BinaryIO

from vllm_advisor.errors import InputError


class DataFormat(StrEnum):
    """For commands that print one report."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class CheckFormat(StrEnum):
    """For check."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"
    GITLAB = "gitlab"


class PlanFormat(StrEnum):
    """For plan."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"


def print_data(data: dict[str, Any], form: str) -> None:
    """Print a report as JSON or YAML on standard output."""
    from vllm_advisor.report.structured import to_json, to_yaml

    sys.stdout.write(to_json(data) if form == DataFormat.JSON else to_yaml(data))


def say(text: str) -> None:
    """A message beside the result: on standard error, for every format."""
    sys.stderr.write(text.rstrip("\n") + "\n")


def read_stdin(what: str) -> str:
    """Text of standard input, when ``-`` is given.

    Raises:
        InputError: it is a terminal, or not UTF-8.
    """
    try:
        return open_stdin(what).read().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8", where="-") from None


def open_stdin(what: str) -> BinaryIO:
    """Standard input, to be read as it comes, when ``-`` is given."""
    if sys.stdin.isatty():
        say(f"reading {what} from the terminal; end with Ctrl-D")
    return sys.stdin.buffer
