"""vllm-advisor explain."""

from __future__ import annotations

from typing import Annotated

import typer

from vllm_advisor.cli.output import read_stdin


def register(app: typer.Typer) -> None:
    """Add the command."""
    # A flag of vLLM's is what is asked about, not an option of ours.
    app.command(context_settings={"ignore_unknown_options": True})(explain)


def explain(
    plan: Annotated[str, typer.Argument(help="plan.yaml, its folder, or - for standard input.")],
    decision: Annotated[
        str | None, typer.Argument(help="Decision id, flag (--max-model-len) or figure id.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Answer why, for any flag or number of a plan.

    Examples:

      vllm-advisor explain deploy/plan.yaml

      vllm-advisor explain deploy/plan.yaml long-docs.kv-cache-dtype

      vllm-advisor explain deploy --max-model-len
    """
    from vllm_advisor import api
    from vllm_advisor.report.explain import print_explanation

    text = read_stdin("a plan.yaml") if plan == "-" else None
    print_explanation(api.explain(plan, text=text), decision)
