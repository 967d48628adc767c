"""vllm-advisor route."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vllm_advisor.cli.output import DataFormat, open_stdin, print_data
from vllm_advisor.errors import EXIT_NO, InputError
from vllm_advisor.units import parse_tokens


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(route)


def route(
    plan: Annotated[
        str, typer.Argument(help="routing.yaml, plan.yaml, or a folder that has one.")
    ] = ".",
    trace: Annotated[
        str | None,
        typer.Option(help="Request lengths as CSV or JSONL, plain or gzip; - for standard input."),
    ] = None,
    prompt_tokens: Annotated[
        str | None, typer.Option(help="One request instead: its length; 8k is 8,000, 8K 8,192.")
    ] = None,
    needs: Annotated[
        str | None,
        typer.Option(help="lookup, whole_document or recent_only, where the trace does not say."),
    ] = None,
    request_class: Annotated[
        str | None, typer.Option(help="Class of the plan, where the trace does not say.")
    ] = None,
    retrieved_tokens: Annotated[
        str | None, typer.Option(help="One request: length with passages; 0 if nothing was found.")
    ] = None,
    history_tokens: Annotated[
        str | None, typer.Option(help="One request: how much of it is earlier conversation.")
    ] = None,
    max_tokens: Annotated[str | None, typer.Option(help="One request: longest answer.")] = None,
    route_name: Annotated[
        str | None, typer.Option("--route", help="One request: route asked for by name.")
    ] = None,
    unavailable: Annotated[
        list[str] | None,
        typer.Option(help="One request: instance or route that does not answer (repeatable)."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(help="Trace: another max_prompt_tokens of the first route (repeatable)."),
    ] = None,
    prompt_column: Annotated[
        str | None, typer.Option(help="Trace: column with the length of the prompt.")
    ] = None,
    output_column: Annotated[
        str | None, typer.Option(help="Trace: column with the length of the answer.")
    ] = None,
    hash_block_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Trace: tokens that one of hash_ids stands for (512)."),
    ] = None,
    input_usd_per_million_tokens: Annotated[
        float | None, typer.Option(help="Trace: price instead of the plan's.")
    ] = None,
    output_usd_per_million_tokens: Annotated[
        float | None, typer.Option(help="Trace: price instead of the plan's.")
    ] = None,
    cached_input_usd_per_million_tokens: Annotated[
        float | None, typer.Option(help="Trace: price of prompt tokens in the prefix cache.")
    ] = None,
    output_format: Annotated[DataFormat, typer.Option("--format", "-f")] = DataFormat.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
) -> None:
    """Where requests go: recorded traffic over the routes of a plan, or one request.

    Examples:

      vllm-advisor route deploy --trace requests.csv

      vllm-advisor route deploy --trace mooncake.jsonl.gz --threshold 12K --format json

      vllm-advisor route deploy --prompt-tokens 9000 --needs lookup

      vllm-advisor route deploy/routing.yaml --prompt-tokens 3k --unavailable chat
    """
    of_one = {
        "route": route_name,
        "retrieved_tokens": _tokens("--retrieved-tokens", retrieved_tokens),
        "history_tokens": _tokens("--history-tokens", history_tokens),
        "max_tokens": _tokens("--max-tokens", max_tokens),
        "unavailable": tuple(unavailable) if unavailable else None,
    }
    of_trace = {
        "thresholds": tuple(_tokens("--threshold", each) for each in threshold)
        if threshold
        else None,
        "prompt_column": prompt_column,
        "output_column": output_column,
        "hash_block_tokens": hash_block_tokens,
        "input_usd_per_million_tokens": input_usd_per_million_tokens,
        "output_usd_per_million_tokens": output_usd_per_million_tokens,
        "cached_input_usd_per_million_tokens": cached_input_usd_per_million_tokens,
    }
    given = {"needs": needs, "request_class": request_class}
    if trace is not None and prompt_tokens is None:
        _refuse(of_one, "--prompt-tokens")
        _print_traffic(plan, trace, {**given, **of_trace}, output_format)
    elif prompt_tokens is not None and trace is None:
        _refuse(of_trace, "--trace")
        tokens = _tokens("--prompt-tokens", prompt_tokens)
        _print_decision(plan, {"prompt_tokens": tokens, **given, **of_one}, output_format)
    else:
        raise InputError(
            "--trace and --prompt-tokens exclude each other"
            if trace is not None
            else "there is nothing to route",
            fix="give either --trace FILE (recorded traffic) or --prompt-tokens N (one request)",
        )


def _print_traffic(plan: str, trace: str, given: dict[str, Any], form: DataFormat) -> None:
    from vllm_advisor import api

    stream = open_stdin("a trace") if trace == "-" else None
    report = api.route_trace(plan, trace, stream=stream, **_said(given)).to_dict()
    if form is DataFormat.TABLE:
        from vllm_advisor.report.route import print_traffic

        print_traffic(report)
    else:
        print_data(report, form)


def _print_decision(plan: str, given: dict[str, Any], form: DataFormat) -> None:
    from vllm_advisor import api

    report = api.route(plan, **_said(given))
    if form is DataFormat.TABLE:
        from vllm_advisor.report.route import print_decision

        print_decision(report.to_dict())
    else:
        print_data(report.to_dict(), form)
    if not report.taken:
        raise typer.Exit(EXIT_NO)


def _said(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _refuse(given: dict[str, Any], flag: str) -> None:
    """An option that would do nothing is an error.

    Raises:
        InputError: one of them is given.
    """
    for name in _said(given):
        option = f"--{name.removesuffix('s') if name == 'thresholds' else name}".replace("_", "-")
        raise InputError(f"{option} goes with {flag}", where=option, fix=f"leave it out, or {flag}")


def _tokens(flag: str, text: str | None) -> int | None:
    """Tokens as vLLM reads them.

    Raises:
        InputError: the text is no token count.
    """
    if text is None:
        return None
    try:
        return parse_tokens(text)
    except ValueError as error:
        raise InputError(str(error), where=flag, fix=f"{flag} 8192") from None
