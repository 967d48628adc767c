"""vllm-advisor probe."""

from __future__ import annotations

from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data
from vllm_advisor.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(probe)


def probe(
    from_node_labels: Annotated[
        str | None,
        typer.Option(help="Read GPU Operator labels: a file with `kubectl get node -o json`."),
    ] = None,
    node: Annotated[str | None, typer.Option(help="Which node of that file.")] = None,
    output_format: Annotated[
        DataFormat,
        typer.Option("--format", "-f", help="json and yaml have a hardware block for a workload."),
    ] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Show the GPUs of this machine (NVML), or of a cluster node (its labels).

    Examples:

      vllm-advisor probe

      vllm-advisor probe --format yaml

      kubectl get node gpu-1 -o json > node.json; vllm-advisor probe --from-node-labels node.json
    """
    from vllm_advisor import api

    if node is not None and from_node_labels is None:
        raise InputError("--node names a node of no file", fix="add --from-node-labels FILE")
    found = api.probe(from_node_labels, node)
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.probe import print_node_labels, print_probe

        (print_probe if from_node_labels is None else print_node_labels)(found)
    else:
        print_data(found, output_format)
