"""vllm-advisor rules."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(rules)


def rules(
    rule: Annotated[str | None, typer.Argument(help="Id or name: print its page.")] = None,
) -> None:
    """List the rules of check, or print the page of one.

    Examples:

      vllm-advisor rules KV001
    """
    from vllm_advisor import api

    sys.stdout.write(api.rules_text(rule))
