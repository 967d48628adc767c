"""vllm-advisor calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vllm_advisor.cli.engine_options import (
    DataParallelSize,
    Gpu,
    GpuCount,
    MaxModelLen,
    MaxNumSeqs,
    Model,
    PipelineParallelSize,
    SetArgs,
    TensorParallelSize,
    Text,
    stated,
)
from vllm_advisor.cli.output import DataFormat, print_data, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(calibrate)


def calibrate(
    model: Model,
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="Results of vllm bench serve, guidellm, genai-perf or aiperf (JSON), snapshots of "
            "/metrics, or folders of them.",
        ),
    ],
    gpu: Gpu,
    gpu_count: GpuCount = 1,
    prefix_hit_rate: Annotated[
        float | None,
        typer.Option(help="Share of the prompts that prefix caching found, 0 to 1."),
    ] = None,
    tensor_parallel_size: TensorParallelSize = None,
    pipeline_parallel_size: PipelineParallelSize = None,
    data_parallel_size: DataParallelSize = None,
    max_model_len: MaxModelLen = None,
    kv_cache_dtype: Text = None,
    quantization: Text = None,
    max_num_seqs: MaxNumSeqs = None,
    max_num_batched_tokens: Text = None,
    set_args: SetArgs = None,
    vllm_version: Text = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="An earlier calibration file to start from; give new results only."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Calibration file to write.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of other content.")
    ] = False,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Fit estimates to measurements of your own server; the options describe that server.

    Examples:

      vllm-advisor calibrate qwen3-8b results/ --gpu h100-sxm --output calibration.yaml

      vllm-advisor calibrate qwen3-32b c1.json c8.json c64.json --gpu h100-sxm -tp 2 --vllm-version 0.19.0

      vllm-advisor estimate qwen3-8b --gpu h100-sxm --input-tokens 1000 --output-tokens 300 --calibration calibration.yaml
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    args = stated(
        tensor_parallel_size=tensor_parallel_size,
        pipeline_parallel_size=pipeline_parallel_size,
        data_parallel_size=data_parallel_size,
        max_model_len=max_model_len,
        kv_cache_dtype=kv_cache_dtype,
        quantization=quantization,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
    )
    report = api.calibration_report(
        model,
        gpu=gpu,
        results=results,
        gpu_count=gpu_count,
        prefix_hit_rate=prefix_hit_rate,
        vllm_version=vllm_version,
        engine_args=args,
        words=tuple(set_args or ()),
        calibration=calibration,
    )
    if output is not None:
        api.write_calibration(report, output, overwrite=overwrite)
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.calibrate import print_calibration

        print_calibration(report.to_dict())
    else:
        print_data(report.to_dict(), output_format)
    if output is not None:
        say(f"wrote {output}; now: vllm-advisor estimate ... --calibration {output}")
