"""vllm-advisor estimate."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from vllm_advisor.cli.engine_options import (
    Calibrations,
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
from vllm_advisor.cli.output import DataFormat, open_stdin, print_data
from vllm_advisor.errors import InputError


class SecondOpinion(StrEnum):
    """Tools that can be asked the same."""

    AICONFIGURATOR = "aiconfigurator"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(estimate)


def estimate(
    model: Model,
    gpu: Gpu,
    input_tokens: Annotated[
        int | None, typer.Option(min=1, help="Mean tokens of a prompt.")
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Mean tokens of an answer.")
    ] = None,
    gpu_count: GpuCount = 1,
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
    replicas: Annotated[
        int, typer.Option(min=1, help="Equal deployments that get the requests in turn.")
    ] = 1,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Replay requests of this load, for its tails.")
    ] = False,
    requests: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="--simulate: how many requests (2,000)."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            help="Recorded traffic with arrivals and lengths, instead of a load: CSV or JSONL, "
            "plain or gzip; - for standard input."
        ),
    ] = None,
    speedup: Annotated[
        float | None, typer.Option(help="--trace: requests arrive so much faster than they did.")
    ] = None,
    prompt_column: Annotated[
        str | None, typer.Option(help="--trace: column with the length of the prompt.")
    ] = None,
    output_column: Annotated[
        str | None, typer.Option(help="--trace: column with the length of the answer.")
    ] = None,
    arrival_column: Annotated[
        str | None, typer.Option(help="--trace: column with the time of arrival.")
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
    calibration: Calibrations = None,
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

      vllm-advisor estimate qwen3-32b --gpu h200-sxm --input-tokens 1000 --output-tokens 300 --request-rate 2 --simulate

      vllm-advisor estimate qwen3-32b --gpu h200-sxm --trace requests.csv --speedup 1.5 --replicas 2

      vllm-advisor estimate qwen3-32b --gpu h200-sxm --input-tokens 1000 --output-tokens 300 --calibration calibration.yaml
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    load = _load(
        {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "concurrency": concurrency,
            "request_rate": request_rate,
            "simulate": simulate or None,
            "requests": requests,
            "second_opinion": second_opinion.value if second_opinion else None,
        },
        {
            "trace": trace,
            "speedup": speedup,
            "prompt_column": prompt_column,
            "output_column": output_column,
            "arrival_column": arrival_column,
        },
    )
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
    report = api.estimate_report(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        prefix_hit_rate=prefix_hit_rate,
        replicas=replicas,
        **load,
        vllm_version=vllm_version,
        calibration=calibration,
        engine_args=args,
        words=tuple(set_args or ()),
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.estimate import print_estimate

        print_estimate(report)
    else:
        print_data(report, output_format)


_SIMULATED = 2000


def _load(made: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """Lengths and a load, or a trace, whose options exclude each other.

    Raises:
        InputError: an option would do nothing, or there are neither lengths nor a trace.
    """
    of_load = {name: value for name, value in made.items() if value is not None}
    of_trace = {name: value for name, value in recorded.items() if value is not None}
    if "trace" in of_trace:
        for name in of_load:
            raise InputError(
                f"{_option(name)} and --trace exclude each other: the trace says what is asked",
                where=_option(name),
                fix=f"leave out {_option(name)}, or --trace",
            )
        stdin = open_stdin("a trace") if of_trace["trace"] == "-" else None
        return {**of_trace, "stream": stdin}
    for name in of_trace:
        raise InputError(
            f"{_option(name)} goes with --trace", where=_option(name), fix="leave it out"
        )
    missing = [n for n in ("input_tokens", "output_tokens") if n not in of_load]
    if missing:
        raise InputError(
            f"{_option(missing[0])} is not given, and no trace either",
            where=_option(missing[0]),
            fix="give --input-tokens N and --output-tokens N, or --trace FILE",
        )
    count = of_load.pop("requests", None)
    if of_load.pop("simulate", False):
        of_load["simulated_requests"] = count or _SIMULATED
    elif count is not None:
        raise InputError(
            "--requests goes with --simulate", where="--requests", fix="add --simulate"
        )
    return of_load


def _option(name: str) -> str:
    return f"--{name}".replace("_", "-")
