"""vllm-advisor verify: needle and routes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vllm_advisor.cli.output import DataFormat, print_data, say
from vllm_advisor.errors import EXIT_NO, InputError, UnknownFactError

BaseUrl = Annotated[
    str,
    typer.Option("--base-url", help="Where the API is; /v1 is added if it has no path."),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        help="Environment variable with the API key [default: VLLM_API_KEY, OPENAI_API_KEY].",
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", help="NAME=VALUE, sent with every request. May be repeated."),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds per request.")]
Format = Annotated[DataFormat, typer.Option("--format", "-f", help="How to print the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks for errors.")]


class ProbeKind(StrEnum):
    """What decides where a probe goes."""

    LENGTH = "length"
    HEADER = "header"
    MODEL = "model"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(verify)
    group.command()(needle)
    group.command()(routes)
    app.add_typer(group, name="verify")


def verify() -> None:
    """Try a running deployment through its OpenAI API.

    Examples:

      vllm-advisor verify needle --base-url http://localhost:8000 --model NAME --document book.txt

      vllm-advisor verify routes deploy/ --base-url http://router:4000
    """


def needle(
    base_url: BaseUrl,
    model: Annotated[str, typer.Option(help="Name of the model on the server.")],
    document: Annotated[Path, typer.Option(help="Text file, UTF-8; repeated where too short.")],
    depths: Annotated[
        str, typer.Option(help="Percent of the document before the needle.")
    ] = "10,50,90",
    lengths: Annotated[
        str | None,
        typer.Option(help="Tokens of the prompts: 4000,32K [default: quarters of the limit]."),
    ] = None,
    needle_text: Annotated[
        str | None,
        typer.Option("--needle", help="The sentence; {code} is another code in each cell."),
    ] = None,
    question: Annotated[str | None, typer.Option(help="What asks for it.")] = None,
    expect: Annotated[
        str | None, typer.Option(help="What a right answer holds [default: the code].")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 64,
    min_hit_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Exit 1 if a smaller share is found.")
    ] = 1.0,
    plot: Annotated[Path | None, typer.Option(help="Write the hits as an SVG here.")] = None,
    api_key_env: KeyVariable = None,
    header: Headers = None,
    timeout: Timeout = 600.0,
    output_format: Format = DataFormat.TABLE,
    verbose: Verbose = False,
) -> None:
    """Say where in a long text a model finds a sentence.

    Examples:

      vllm-advisor verify needle --base-url http://localhost:8000 --model NAME --document book.txt

      vllm-advisor verify needle --base-url http://localhost:8000 --model NAME
      --document contract.txt --lengths 8K,64K,120K --depths 5,25,50,75,95 --plot needle.svg

      vllm-advisor verify needle --base-url https://llm.example.com --model NAME
      --document book.txt --needle 'The lighthouse has {code} on its door.'
      --question 'What does the lighthouse have on its door?'
    """
    from vllm_advisor import api

    _check_plot(plot)
    result = api.verify_needle(
        base_url,
        model,
        document,
        depths=_items(depths),
        lengths=_items(lengths or ""),
        needle=needle_text,
        question=question,
        expect=expect,
        max_tokens=max_tokens,
        min_hit_rate=min_hit_rate,
        api_key_env=api_key_env,
        headers=tuple(header or ()),
        timeout=timeout,
        progress=say,
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.verify import print_needle

        print_needle(result.to_dict())
    else:
        print_data(result.to_dict(), output_format)
    if plot is not None:
        api.write_plot(api.needle_plot(result), plot)
        say(f"wrote {plot}")
    if not result.passed:
        raise typer.Exit(EXIT_NO)


def routes(
    plan: Annotated[str, typer.Argument(help="routing.yaml, plan.yaml, or a folder.")],
    base_url: BaseUrl,
    only: Annotated[
        list[ProbeKind] | None, typer.Option(help="Probes of this kind only. May be repeated.")
    ] = None,
    overlong: Annotated[
        bool, typer.Option("--overlong", help="Also send a prompt that no route takes.")
    ] = False,
    max_probe_tokens: Annotated[
        int, typer.Option(min=1, help="Longest prompt, unless the limit before it is longer.")
    ] = 20_000,
    instance: Annotated[
        list[str] | None,
        typer.Option(help="NAME=URL: read this instance's /metrics. May be repeated."),
    ] = None,
    api_key_env: KeyVariable = None,
    header: Headers = None,
    timeout: Timeout = 600.0,
    output_format: Format = DataFormat.TABLE,
    verbose: Verbose = False,
) -> None:
    """Send probes to a router and check where they land.

    Examples:

      vllm-advisor verify routes deploy/ --base-url http://router:4000

      vllm-advisor verify routes deploy/routing.yaml --base-url http://localhost:8080
      --instance chat=http://10.0.0.1:8000 --instance long-docs=http://10.0.0.2:8000

      vllm-advisor verify routes deploy/ --base-url http://router:4000 --only length --overlong
    """
    from vllm_advisor import api

    result = api.verify_routes(
        plan,
        base_url,
        kinds=[kind.value for kind in only or ()],
        overlong=overlong,
        max_probe_tokens=max_probe_tokens,
        instances=tuple(instance or ()),
        api_key_env=api_key_env,
        headers=tuple(header or ()),
        timeout=timeout,
        progress=say,
    )
    if output_format is DataFormat.TABLE:
        from vllm_advisor.report.verify import print_routes

        print_routes(result.to_dict())
    else:
        print_data(result.to_dict(), output_format)
    if not result.passed:
        raise typer.Exit(EXIT_NO)
    if result.unknown:
        raise UnknownFactError(
            f"nobody says where {result.unknown:,} of {len(result.probes):,} probes landed",
            where=result.base_url,
            fix="--instance NAME=URL for each instance: its counters tell who answered",
        )


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _check_plot(plot: Path | None) -> None:
    """What would fail after an hour of requests fails at once."""
    if plot is None:
        return
    if plot.suffix != ".svg":
        raise InputError(f"{plot.name} is no .svg", where="--plot", fix="--plot needle.svg")
    if plot.is_dir() or not plot.parent.is_dir():
        raise InputError("cannot write there", where=str(plot), fix="name a file in a folder")
