"""vllm-advisor size."""

from __future__ import annotations

from typing import Annotated

import typer

from vllm_advisor.cli.engine_options import (
    GpuCount,
    MaxModelLen,
    MaxNumSeqs,
    MemoryCalibration,
    Model,
    PipelineParallelSize,
    SetArgs,
    TensorParallelSize,
    Text,
    stated,
)
from vllm_advisor.cli.output import DataFormat, print_data
from vllm_advisor.errors import EXIT_NO


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(size)


def size(
    model: Model,
    gpu: Annotated[str | None, typer.Option(help="GPU profile or NVML name.")] = None,
    gpu_count: GpuCount = 1,
    tensor_parallel_size: TensorParallelSize = None,
    pipeline_parallel_size: PipelineParallelSize = None,
    decode_context_parallel_size: Annotated[
        int | None, typer.Option("--decode-context-parallel-size", "-dcp", min=1)
    ] = None,
    max_model_len: MaxModelLen = None,
    kv_cache_dtype: Text = None,
    max_num_seqs: MaxNumSeqs = None,
    max_num_batched_tokens: Text = None,
    gpu_memory_utilization: Annotated[float | None, typer.Option()] = None,
    kv_cache_memory_bytes: Annotated[
        str | None, typer.Option(help="Bytes of KV cache per GPU (10GiB): no GPU is needed then.")
    ] = None,
    quantization: Text = None,
    set_args: SetArgs = None,
    vllm_version: Text = None,
    calibration: MemoryCalibration = None,
    training: Annotated[
        bool, typer.Option("--training", help="Memory of full training, by component.")
    ] = False,
    sequence_length: Annotated[
        int, typer.Option(min=1, help="For --training: tokens per sequence.")
    ] = 2048,
    batch_size: Annotated[int, typer.Option(min=1, help="For --training: sequences per step.")] = 1,
    retention: Annotated[
        bool,
        typer.Option(
            "--retention", help="What windows, sinks and eviction keep, and what is lost."
        ),
    ] = False,
    attention_cost: Annotated[
        bool, typer.Option("--attention-cost", help="Prefill cost at this length against 4K.")
    ] = False,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Size one instance: memory per GPU, KV cache tokens, concurrency.

    Examples:

      vllm-advisor size meta-llama/Llama-3.1-8B-Instruct --gpu h100-sxm

      vllm-advisor size deepseek-ai/DeepSeek-V3 --gpu h200-sxm --gpu-count 8 --max-model-len 128K

      vllm-advisor size qwen3-32b --gpu h100-sxm -tp 2 --vllm-version 0.31.0 --calibration memory.yaml

      vllm-advisor size ./my-model --kv-cache-memory-bytes 40GiB --kv-cache-dtype fp8
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    args = stated(
        tensor_parallel_size=tensor_parallel_size,
        pipeline_parallel_size=pipeline_parallel_size,
        decode_context_parallel_size=decode_context_parallel_size,
        max_model_len=max_model_len,
        kv_cache_dtype=kv_cache_dtype,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        gpu_memory_utilization=gpu_memory_utilization,
        kv_cache_memory_bytes=kv_cache_memory_bytes,
        quantization=quantization,
    )
    report = api.size_report(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        engine_args=args,
        words=tuple(set_args or ()),
        calibration=calibration,
        training=(batch_size, sequence_length) if training else None,
        retention=retention,
        attention_cost=attention_cost,
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.size import print_size

        print_size(report)
    else:
        print_data(report, output_format)
    if report.get("fits") is False:
        raise typer.Exit(EXIT_NO)
