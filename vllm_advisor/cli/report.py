"""vllm-advisor report."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vllm_advisor.cli.engine_options import MemoryCalibration
from vllm_advisor.cli.output import DataFormat, open_stdin, print_data, say
from vllm_advisor.errors import EXIT_NO, InputError

if TYPE_CHECKING:
    from vllm_advisor.api import StartupReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    log: Annotated[
        str | None,
        typer.Argument(metavar="LOG", help="What vLLM printed; - for standard input."),
    ] = None,
    kubectl: Annotated[
        str | None,
        typer.Option(metavar="POD", help="Instead of a file: what kubectl logs prints of it."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="With --kubectl.")
    ] = None,
    container: Annotated[
        str | None, typer.Option("--container", "-c", help="With --kubectl.")
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", help="With --kubectl: before the last restart.")
    ] = False,
    gpu: Annotated[
        str | None, typer.Option(help="GPU profile or NVML name; logs do not say it.")
    ] = None,
    gpu_count: Annotated[
        int, typer.Option(min=1, help="GPUs of the node, where the log has no arguments.")
    ] = 1,
    model: Annotated[
        str | None,
        typer.Option(help="Hub id, bundled name or folder, where the log names another path."),
    ] = None,
    vllm_version: Annotated[str | None, typer.Option(help="Where the log does not say it.")] = None,
    calibration: MemoryCalibration = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Memory calibration file to write, of this log."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of other content.")
    ] = False,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Read a start-up log: what it says, how far a prediction is from it, why vLLM did not start.

    Examples:

      vllm-advisor report startup.log --gpu h100-sxm

      docker logs vllm 2>&1 | vllm-advisor report - --gpu l40s

      vllm-advisor report --kubectl deployment/vllm --namespace llm --previous --gpu a100-sxm4-80

      vllm-advisor report startup.log --gpu h100-sxm --model meta-llama/Llama-3.1-8B-Instruct

      vllm-advisor report startup.log --gpu h100-sxm --output memory.yaml

      vllm-advisor size qwen3-32b --gpu h100-sxm -tp 2 --vllm-version 0.31.0 --calibration memory.yaml
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    given: dict[str, Any] = {
        "gpu": gpu,
        "gpu_count": gpu_count,
        "model": model,
        "vllm_version": vllm_version,
        "calibration": calibration,
    }
    if output is not None and calibration is not None:
        raise InputError(
            "a calibration is made of the difference from the bundled constants",
            where="--output",
            fix="leave out --calibration, or --output",
        )
    found: StartupReport
    if kubectl is not None:
        if log is not None:
            raise InputError(
                "a file and --kubectl exclude each other", where="--kubectl", fix="leave one out"
            )
        found = api.report_pod(
            kubectl, namespace=namespace, container=container, previous=previous, **given
        )
    elif namespace is not None or container is not None or previous:
        raise InputError(
            "--namespace, --container and --previous name a pod's log",
            where="--kubectl",
            fix="--kubectl POD",
        )
    elif log is None:
        raise InputError(
            "no log is named", where="LOG", fix="a file, - for standard input, or --kubectl POD"
        )
    elif log == "-":
        stream = open_stdin("a start-up log")
        lines = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="\n")
        found = api.report_startup("-", lines=lines, **given)
    else:
        found = api.report_startup(log, **given)
    if output is not None:
        api.write_memory_calibration(found, output, overwrite=overwrite)
    data = found.to_dict()
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.startup import print_startup

        print_startup(data)
    else:
        print_data(data, output_format)
    if output is not None:
        say(f"wrote {output}; now: vllm-advisor size ... --calibration {output}")
    if found.refused:
        raise typer.Exit(EXIT_NO)
