"""vllm-advisor init."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vllm_advisor.cli.output import say
from vllm_advisor.errors import OutputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


def init(
    profile: Annotated[
        str, typer.Option(help="Bundled workload to start from (vllm-advisor profiles workloads).")
    ] = "interactive-chat",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: standard output.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Write a commented workload file to start from.

    Examples:

      vllm-advisor init --profile rag-assistant -o workload.yaml
    """
    from vllm_advisor.knowledge.bundled_workloads import starter_text

    text = starter_text(profile)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise OutputError(
            "the file is already there", where=str(output), fix="name another file"
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot write: {error.strerror}",
            where=str(output),
            fix="name a file in a folder that exists and can be written",
        ) from None
    say(f"wrote {output}; now: vllm-advisor plan {output}")
