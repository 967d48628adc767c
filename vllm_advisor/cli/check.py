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


class InputKind(StrEnum):
    """What a source may be said to be."""

    SERVE = "serve"
    SHELL = "shell"
    KUBERNETES = "kubernetes"
    PRODUCTION_STACK = "helm-production-stack"
    COMPOSE = "compose"
    SYSTEMD = "systemd"
    CONFIG = "config"
    PLAN = "plan"
    DOCKERFILE = "dockerfile"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_extra_args": True})(check)


def check(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files and folders, - for standard input, or a command after --.",
        ),
    ],
    kind: Annotated[
        InputKind | None, typer.Option(help="What the source is, where it is not found out.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="GPU profile or NVML name; else what node labels in the source name."),
    ] = None,
    gpu_count: Annotated[
        int | None, typer.Option(min=1, help="GPUs of the node; else what the source asks for.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes one instance may span; else what it says.")
    ] = None,
    model_config: Annotated[
        str | None, typer.Option(help="Folder or config.json of the model, if it is not known.")
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Else what the image's tag states, and the newest known.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="A workload file, or one with its classes alone.")
    ] = None,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="Only this class of it; repeatable.")
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Equal servers; else what the source states."),
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 from this severity on.")] = FailOn.ERROR,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Check what starts vLLM: will it start on this GPU, and what to change.

    Reads scripts, Kubernetes manifests, production-stack's Helm values, Compose files, systemd
    units, Dockerfiles, files of vllm serve --config and plan.yaml.

    Examples:

      vllm-advisor check serve.sh --gpu h100-sxm

      vllm-advisor check deploy/ values.yaml

      kubectl get deployment -o yaml | vllm-advisor check - --gpu l4

      vllm-advisor check serve.sh --gpu h100-sxm --workload workload.yaml

      vllm-advisor check --gpu l4 -- vllm serve Qwen/Qwen3-8B --max-model-len 40960
    """
    from vllm_advisor import api

    text = read_stdin("a script or a manifest") if "-" in source else None
    report = api.check(
        source[0] if len(source) == 1 else source,
        kind=kind.value if kind else None,
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
