"""vllm-advisor check."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data, read_stdin
from vllm_advisor.errors import EXIT_NO


class FailOn(StrEnum):
    """The least severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_extra_args": True})(check)


def check(
    source: Annotated[
        list[str],
        typer.Argument(help="A shell script, - for standard input, or a command after --."),
    ],
    gpu: Annotated[str | None, typer.Option(help="GPU profile or NVML name.")] = None,
    gpu_count: Annotated[int, typer.Option(min=1, help="GPUs of the node.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes one instance may span.")] = 1,
    model_config: Annotated[
        str | None, typer.Option(help="Folder or config.json of the model, if it is not known.")
    ] = None,
    vllm_version: Annotated[str | None, typer.Option()] = None,
    workload: Annotated[
        str | None, typer.Option(help="A workload file, or one with its classes alone.")
    ] = None,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="Only this class of it; repeatable.")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Equal servers that share it.")] = 1,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 from this severity on.")] = FailOn.ERROR,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Check a vllm serve command: will it start on this GPU, and what to change.

    Examples:

      vllm-advisor check serve.sh --gpu h100-sxm

      vllm-advisor check serve.sh --gpu h100-sxm --workload workload.yaml

      vllm-advisor check --gpu l4 -- vllm serve Qwen/Qwen3-8B --max-model-len 40960
    """
    from vllm_advisor import api

    text = read_stdin("a script") if source == ["-"] else None
    report = api.check(
        source[0] if len(source) == 1 else source,
        text=text,
        gpu=gpu,
        gpu_count=gpu_count,
        node_count=nodes,
        model_config=model_config,
        vllm_version=vllm_version,
        workload=workload,
        classes=classes or None,
        replicas=replicas,
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.findings import print_findings

        print_findings(report.to_dict())
    else:
        print_data(report.to_dict(), output_format)
    if report.fails(fail_on.value):
        raise typer.Exit(EXIT_NO)
