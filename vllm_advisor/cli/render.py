"""vllm-advisor render."""

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
from vllm_advisor.cli.output import read_stdin, say
from vllm_advisor.errors import EXIT_NO


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(render)


def render(
    plan: Annotated[
        str, typer.Argument(help="plan.yaml, a folder that has one, or - for standard input.")
    ],
    target: Targets = None,
    output_dir: OutputDir = None,
    overwrite: Overwrite = False,
    check: Check = False,
    diff: Diff = None,
    environment: EnvironmentFile = None,
    set_: Settings = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tracebacks for errors.")
    ] = False,
) -> None:
    """Write the files of a plan for Kubernetes, Helm, llm-d, KServe, Compose or a shell.

    Without --output-dir the files are printed, one after the other.

    Examples:

      vllm-advisor render deploy/plan.yaml --target kubernetes --set namespace=llm

      vllm-advisor render deploy --target helm-production-stack --output-dir deploy

      vllm-advisor render deploy --target kubernetes --diff deploy

      vllm-advisor render deploy --target kubernetes --output-dir deploy --check
    """
    from vllm_advisor import api

    text = read_stdin("a plan") if plan == "-" else None
    report = api.read_report(
        plan, text=text, environment_file=environment, environment=tuple(set_ or ())
    )
    if not report.feasible:
        say("no feasible plan: there is nothing to write")
        raise typer.Exit(EXIT_NO)
    if output_dir is None and diff is None and not check:
        from vllm_advisor.api.writing import as_one_text

        sys.stdout.write(as_one_text(report.target_files(tuple(target or ("serve",)))))
        return
    deliver(report, target, output_dir, overwrite=overwrite, check=check, diff=diff)
