"""vllm-advisor observe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data, say
from vllm_advisor.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(observe)


def observe(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="A vLLM server, or a Prometheus that reads some."),
    ],
    window: Annotated[
        str | None,
        typer.Option(
            help="How long to watch a server [default: 60s], or to look back in Prometheus "
            "[default: 1h]: 90s, 5m, 24h, 7d."
        ),
    ] = None,
    since_start: Annotated[
        bool, typer.Option("--since-start", help="Of a server: all since its start, at once.")
    ] = False,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="GPU that serves now (profile or NVML name) [default: what the plugin says]."
        ),
    ] = None,
    gpu_count: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many, over all replicas [default: as the plugin says, or one each]."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Hub id, bundled name or folder, where the server has another name."),
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Plan for this version instead of the server's.")
    ] = None,
    served_model: Annotated[
        str | None, typer.Option(help="Which model, where Prometheus knows several.")
    ] = None,
    match: Annotated[
        str, typer.Option(help="Which servers, in Prometheus: its label matchers.")
    ] = "",
    ttft_ms: Annotated[
        float | None, typer.Option(min=0.001, help="Target for the first token, 95th percentile.")
    ] = None,
    itl_ms: Annotated[
        float | None, typer.Option(min=0.001, help="Target for the time between tokens.")
    ] = None,
    e2e_ms: Annotated[
        float | None, typer.Option(min=0.001, help="Target for the last token.")
    ] = None,
    keep_latency: Annotated[
        bool, typer.Option("--keep-latency", help="Other targets: what is seen now.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Workload file to write.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of other content.")
    ] = False,
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the key [default: VLLM_API_KEY]."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, sent with every request. May be repeated."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=600, help="Seconds for one request.")
    ] = 30.0,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Read what servers do: their load as a workload, what is wrong, what a plan would change.

    Examples:

      vllm-advisor observe http://localhost:8000 --window 5m --output workload.yaml

      vllm-advisor observe http://localhost:8000 --gpu h100-sxm --gpu-count 2 --ttft-ms 1000

      vllm-advisor observe http://prometheus:9090 --window 7d --match 'namespace="llm"' --gpu l40s --keep-latency
    """  # noqa: E501 - examples are whole lines
    from vllm_advisor import api

    report = api.observe(
        url,
        window=_seconds(window),
        since_start=since_start,
        gpu=gpu,
        gpu_count=gpu_count,
        model=model,
        served_model=served_model,
        vllm_version=vllm_version,
        match=match,
        ttft_ms=ttft_ms,
        itl_ms=itl_ms,
        e2e_ms=e2e_ms,
        keep_latency=keep_latency,
        api_key_env=api_key_env,
        headers=tuple(header or ()),
        timeout=timeout,
        said=say,
    )
    if output is not None:
        api.write_workload(report, output, overwrite=overwrite)
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.observe import print_observed

        print_observed(report.to_dict())
    else:
        print_data(report.to_dict(), output_format)
    if output is not None:
        say(f"wrote {output}; now: vllm-advisor plan {output}" if gpu else f"wrote {output}")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from vllm_advisor.units import parse_seconds

    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise InputError(str(error), where="--window") from None
    if seconds > 366 * 86_400:
        raise InputError(f"{text} is more than a year", where="--window", fix="--window 7d")
    return seconds
