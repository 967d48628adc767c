"""vllm-advisor plan."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vllm_advisor.cli.delivery import (
    Check,
    Diff,
    EnvironmentFile,
    OutputDir,
    Overwrite,
    Settings,
    Targets,
    deliver,
)
from vllm_advisor.cli.engine_options import Calibrations
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
    target: Targets = None,
    output_dir: OutputDir = None,
    overwrite: Overwrite = False,
    check: Check = False,
    diff: Diff = None,
    environment: EnvironmentFile = None,
    set_: Settings = None,
    gpu: Annotated[
        str | None, typer.Option(help="Plan for this GPU instead of the workload's.")
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Plan for this vLLM version instead of the workload's.")
    ] = None,
    calibration: Calibrations = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Replay the load: are the targets met?")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tracebacks for errors.")
    ] = False,
) -> None:
    """Plan a deployment for a workload, and explain it.

    Examples:

      vllm-advisor plan contract-review

      vllm-advisor plan workload.yaml --output-dir deploy/

      vllm-advisor plan workload.yaml --target kubernetes --set namespace=llm --output-dir deploy/

      vllm-advisor plan workload.yaml --calibration speed.yaml --calibration memory.yaml

      vllm-advisor plan workload.yaml --format json | jq .cost
    """
    from vllm_advisor import api

    text = read_stdin("a workload") if workload == "-" else None
    report = api.plan(
        workload,
        text=text,
        hardware_gpu=gpu,
        vllm_version=vllm_version,
        calibration=calibration,
        verify=verify,
        environment_file=environment,
        environment=tuple(set_ or ()),
    )
    if output_format is PlanFormat.TABLE:
        from vllm_advisor.report.table import print_plan

        print_plan(report.to_dict())
    elif output_format is PlanFormat.MARKDOWN:
        page = next(a for a in report.artifacts() if a.path == "PLAN.md")
        sys.stdout.write(page.text)
    else:
        print_data(report.to_dict(), DataFormat(output_format.value))
    deliver(report, target, output_dir, overwrite=overwrite, check=check, diff=diff)
    if not report.feasible:
        say("no feasible plan: nothing was written")
        raise typer.Exit(EXIT_NO)
