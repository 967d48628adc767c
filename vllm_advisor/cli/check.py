"""vllm-advisor check."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vllm_advisor.cli.engine_options import MemoryCalibration
from vllm_advisor.cli.output import CheckFormat, print_data, read_stdin, say
from vllm_advisor.errors import EXIT_NO, InputError

if TYPE_CHECKING:
    from vllm_advisor.api import CheckOptions, CheckReport


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
    calibration: MemoryCalibration = None,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Only these rules: ids, names or families, with commas or repeated."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Not these rules.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Instead of the nearest .vllm-advisor.yaml in or above the folder."),
    ] = None,
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Read no .vllm-advisor.yaml.")
    ] = False,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit 1 from this severity on; error unless given.")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Make the fixes that are safe, and report what remains.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print those fixes as a diff, instead of the report.")
    ] = False,
    output_format: Annotated[CheckFormat, typer.Option("--format", "-f")] = CheckFormat.TABLE,
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

      vllm-advisor check deploy/ --format sarif --fail-on warning
    """
    from vllm_advisor import api

    options = _options(source, select, ignore, fail_on, config, read_config=not no_config)
    text = read_stdin("a script or a manifest") if "-" in source else None

    def checked() -> CheckReport:
        return api.check(
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
            calibration=calibration,
            options=options,
        )

    if fix and diff:
        raise InputError("--fix and --diff exclude each other", where="--diff", fix="leave one out")
    report = checked()
    if fix or diff:
        fixes = api.fixes_of(report)
        found = f"{fixes.count} of {len(report.findings)} findings"
        if diff:
            sys.stdout.write(fixes.diff())
            say(f"{found} can be fixed safely")
        else:
            fixes.write()
            say(f"fixed {found}" + "".join(f"\nwrote {file.path}" for file in fixes.files))
            report = checked()
    if not diff:
        _print(report, output_format, options.fail_on)
    if report.fails(options.fail_on):
        raise typer.Exit(EXIT_NO)


def _options(
    source: list[str],
    select: list[str] | None,
    ignore: list[str] | None,
    fail_on: FailOn | None,
    config: Path | None,
    *,
    read_config: bool,
) -> CheckOptions:
    """The rules to run; the nearest file of them is that of the first path, else of the folder."""
    from vllm_advisor import api

    if config is None and read_config:
        first = Path(source[0])
        config = api.find_config(first if first.exists() else Path.cwd())
    return api.check_options(
        select=select or (),
        ignore=ignore or (),
        fail_on=None if fail_on is None else fail_on.value,
        config=config,
    )


def _print(report: CheckReport, form: CheckFormat, fail_on: str) -> None:
    data = report.to_dict()
    if form is CheckFormat.TABLE:
        from vllm_advisor.report.findings import print_findings

        print_findings(data, report.texts)
    elif form is CheckFormat.SARIF:
        from vllm_advisor.report.sarif import sarif_log

        print_data(sarif_log(data), CheckFormat.JSON)
    elif form is CheckFormat.GITHUB:
        from vllm_advisor.report.github import workflow_commands

        sys.stdout.write(workflow_commands(data))
    elif form is CheckFormat.JUNIT:
        from vllm_advisor.report.junit import junit_xml

        sys.stdout.write(junit_xml(data, fail_on))
    elif form is CheckFormat.GITLAB:
        from vllm_advisor.report.check_summary import summary
        from vllm_advisor.report.gitlab import code_quality

        sys.stdout.write(code_quality(data))
        say(summary(data))
    else:
        print_data(data, form)
