"""Options that describe one deployment, the same for every command that takes them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Model = Annotated[
    str, typer.Argument(help="Hub id, bundled name, folder with config.json, or config.json.")
]
Gpu = Annotated[str, typer.Option(help="GPU profile or NVML name.")]
GpuCount = Annotated[int, typer.Option(min=1, help="GPUs of one node.")]
TensorParallelSize = Annotated[int | None, typer.Option("--tensor-parallel-size", "-tp", min=1)]
PipelineParallelSize = Annotated[int | None, typer.Option("--pipeline-parallel-size", "-pp", min=1)]
DataParallelSize = Annotated[int | None, typer.Option("--data-parallel-size", "-dp", min=1)]
MaxModelLen = Annotated[
    str | None, typer.Option(help="Tokens; 32k is 32,000, 32K is 32,768, auto fits it.")
]
Text = Annotated[str | None, typer.Option()]
MaxNumSeqs = Annotated[int | None, typer.Option(min=1)]
SetArgs = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any other engine argument: --set block_size=32 (repeatable)."),
]

Calibrations = Annotated[
    list[str] | None,
    typer.Option(
        "--calibration",
        help="What your own server showed: its speed (vllm-advisor calibrate) or its memory "
        "(vllm-advisor report LOG --output FILE); repeatable.",
    ),
]
MemoryCalibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        help="What a start-up log says of this server's memory (vllm-advisor report LOG --output "
        "FILE).",
    ),
]


def stated(**given: Any) -> dict[str, Any]:
    """Engine arguments without those that were left out."""
    return {name: value for name, value in given.items() if value is not None}
