"""vllm-advisor rules."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(rules)


def rules(
    rule: Annotated[
        str | None, typer.Argument(help="Id or name: print its page. A family: list it.")
    ] = None,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
) -> None:
    """List the rules of check, or print the page of one.

    Examples:

      vllm-advisor rules KV001

      vllm-advisor rules --format json
    """
    from vllm_advisor import api

    found = api.list_rules(rule)
    if output_format is not DataFormat.TABLE:
        print_data({"schema_version": "1", "rules": found}, output_format)
    elif rule is not None and rule.upper() != found[0]["family"]:
        (one,) = found
        sys.stdout.write(f"{one['id']} {one['name']} ({one['severity']})\n\n{one['page']}\n")
    else:
        width = max(len(one["name"]) for one in found)
        for one in found:
            row = f"{one['id']}  {one['name']:<{width}}  {one['severity']:<7}  {one['summary']}\n"
            sys.stdout.write(row)
