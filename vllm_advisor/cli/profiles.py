"""vllm-advisor profiles."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer


class ProfileKind(StrEnum):
    """Kinds of bundled facts."""

    GPUS = "gpus"
    MODELS = "models"
    WORKLOADS = "workloads"
    ENGINES = "engines"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(profiles)


def profiles(
    kind: Annotated[ProfileKind, typer.Argument(help="Which facts.")],
    name: Annotated[str | None, typer.Argument(help="Print this profile.")] = None,
) -> None:
    """List the bundled facts, or print one of them with its sources.

    Examples:

      vllm-advisor profiles gpus

      vllm-advisor profiles models llama-3.1-8b-instruct
    """
    from vllm_advisor import api

    if name is None:
        sys.stdout.write("\n".join(api.profile_names(kind.value)) + "\n")
    else:
        sys.stdout.write(api.profile_text(kind.value, name))
