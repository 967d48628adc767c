"""vllm-advisor plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, PlanFormat, print_data, read_stdin, say
from vllm_advisor.errors import EXIT_NO


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    workload: Annotated[
        str,
        typer.Argument(help="Workload file, the name of a bundled one, or - for standard input."),
    ],
    output_format: Annotated[
        PlanFormat, typer.Option("--format", "-f", help="How to print the plan.")
    ] = PlanFormat.TABLE,
    output_dir: Annotated[
        Path | None,
        typer.Option(help="Write serve-*.sh, plan.yaml and PLAN.md here: all of them or none."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of other content.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; fail if --output-dir differs from the plan."),
    ] = False,
    gpu: Annotated[
        str | None, typer.Option(help="Plan for this GPU instead of the workload's.")
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Plan for this vLLM version instead of the workload's.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tracebacks for errors.")
    ] = False,
) -> None:
    """Plan a deployment for a workload, and explain it.

    Examples:

      vllm-advisor plan contract-review

      vllm-advisor plan workload.yaml --output-dir deploy/

      vllm-advisor plan workload.yaml --format json | jq .cost
    """
    from vllm_advisor import api

    text = read_stdin("a workload") if workload == "-" else None
    report = api.plan(workload, text=text, hardware_gpu=gpu, vllm_version=vllm_version)
    if output_format is PlanFormat.TABLE:
        from vllm_advisor.report.table import print_plan

        print_plan(report.to_dict())
    elif output_format is PlanFormat.MARKDOWN:
        page = next(a for a in report.artifacts() if a.path == "PLAN.md")
        sys.stdout.write(page.text)
    else:
        print_data(report.to_dict(), DataFormat(output_format.value))
    if output_dir is not None and check:
        from vllm_advisor.api.writing import drift

        changed = drift(report.artifacts(), output_dir)
        if changed:
            say(f"differs from the plan: {', '.join(changed)} in {output_dir}")
            raise typer.Exit(EXIT_NO)
    elif output_dir is not None and report.feasible:
        for name in api.write_plan(report, output_dir, overwrite=overwrite):
            say(f"wrote {output_dir / name}")
    if not report.feasible:
        say("no feasible plan: nothing was written")
        raise typer.Exit(EXIT_NO)
