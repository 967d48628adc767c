"""vllm-advisor estimate."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data


class SecondOpinion(StrEnum):
    """Tools that can be asked the same."""

    AICONFIGURATOR = "aiconfigurator"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(estimate)


def estimate(
    model: Annotated[
        str, typer.Argument(help="Hub id, bundled name, folder with config.json, or config.json.")
    ],
    gpu: Annotated[str, typer.Option(help="GPU profile or NVML name.")],
    input_tokens: Annotated[int, typer.Option(min=1, help="Mean tokens of a prompt.")],
    output_tokens: Annotated[int, typer.Option(min=1, help="Mean tokens of an answer.")],
    gpu_count: Annotated[int, typer.Option(min=1, help="GPUs of one node.")] = 1,
    concurrency: Annotated[
        float | None,
        typer.Option(help="Requests in the system at all times, as vllm bench serve makes them."),
    ] = None,
    request_rate: Annotated[
        float | None, typer.Option(help="Requests per second, arriving at random.")
    ] = None,
    prefix_hit_rate: Annotated[
        float, typer.Option(help="Share of the prompt that prefix caching finds, 0 to 1.")
    ] = 0.0,
    tensor_parallel_size: Annotated[
        int | None, typer.Option("--tensor-parallel-size", "-tp", min=1)
    ] = None,
    pipeline_parallel_size: Annotated[
        int | None, typer.Option("--pipeline-parallel-size", "-pp", min=1)
    ] = None,
    data_parallel_size: Annotated[
        int | None, typer.Option("--data-parallel-size", "-dp", min=1)
    ] = None,
    max_model_len: Annotated[
        str | None, typer.Option(help="Tokens; 32k is 32,000, 32K is 32,768, auto fits it.")
    ] = None,
    kv_cache_dtype: Annotated[str | None, typer.Option()] = None,
    quantization: Annotated[str | None, typer.Option()] = None,
    max_num_seqs: Annotated[int | None, typer.Option(min=1)] = None,
    max_num_batched_tokens: Annotated[str | None, typer.Option()] = None,
    set_args: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other engine argument: --set block_size=32 (repeatable)."),
    ] = None,
    vllm_version: Annotated[str | None, typer.Option()] = None,
    second_opinion: Annotated[
        SecondOpinion | None,
        typer.Option(help="Ask this tool as well: pip install 'vllm-advisor[aiconfigurator]'."),
    ] = None,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Estimate latency and throughput of one deployment under a load.

    Examples:

      vllm-advisor estimate qwen3-32b --gpu h100-sxm --gpu-count 2 --input-tokens 1000 --output-tokens 300 --concurrency 32

      vllm-advisor estimate qwen3-32b --gpu h200-sxm --input-tokens 1000 --output-tokens 300 --request-rate 2
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    given = {
        "tensor_parallel_size": tensor_parallel_size,
        "pipeline_parallel_size": pipeline_parallel_size,
        "data_parallel_size": data_parallel_size,
        "max_model_len": max_model_len,
        "kv_cache_dtype": kv_cache_dtype,
        "quantization": quantization,
        "max_num_seqs": max_num_seqs,
        "max_num_batched_tokens": max_num_batched_tokens,
    }
    report = api.estimate_report(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        request_rate=request_rate,
        prefix_hit_rate=prefix_hit_rate,
        vllm_version=vllm_version,
        engine_args={name: value for name, value in given.items() if value is not None},
        words=tuple(set_args or ()),
        second_opinion=second_opinion.value if second_opinion else None,
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.estimate import print_estimate

        print_estimate(report)
    else:
        print_data(report, output_format)
