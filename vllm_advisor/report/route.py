"""Where requests go, in a terminal: one of them, or recorded traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import counted, number

_UNKNOWN = "-"


def print_decision(decision: Mapping[str, Any]) -> None:
    """Print where one request goes, and why.

    Args:
        decision: the decision as plain data, as ``--format json`` prints it.
    """
    page = Page()
    action = decision["action"].replace("_", " ")
    if decision["route"] is None:
        page.text((action, "bold red"), f": {decision['reason']}")
        return
    page.text(
        (f"{action} ", "bold green"),
        (f"to {decision['route']}", "bold"),
        f" on instance {decision['instance']}: {decision['reason']}",
    )
    page.blank()
    page.text(f"model: {decision['model']}", indent=2)
    for name, value in decision["headers"].items():
        page.text(f"header: {name}: {value}", indent=2)
    page.text(
        f"prompt: {number(decision['prompt_tokens'])} tokens; the route takes "
        f"{number(decision['max_prompt_tokens'])}",
        indent=2,
    )
    if decision["retrieve_tokens"] is not None:
        page.text(f"room for passages: {number(decision['retrieve_tokens'])} tokens", indent=2)
    page.text(f"stand-ins: {', '.join(decision['stand_ins']) or 'none'}", indent=2)


def print_traffic(report: Mapping[str, Any]) -> None:
    """Print what a policy does to a trace.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    page.text(
        (f"{report['plan']}: {counted(report['requests'], 'request')}", "bold"),
        f" of {report['trace']['file']}, {number(report['prompt_tokens'])} prompt tokens, "
        f"{_tokens(report['output_tokens'])} generated",
    )
    lengths = ", ".join(f"{key} {number(n)}" for key, n in report["prompt_lengths"].items())
    page.text(f"prompt lengths: {lengths}")
    columns = report["trace"]["columns"]
    used = ", ".join(f"{f} is {n}" if f != n else f for f, n in columns.items())
    ignored = ", ".join(report["trace"]["ignored_columns"])
    page.text(f"columns: {used}" + (f"; ignored: {ignored}" if ignored else ""))
    _print_routes(page, report)
    _print_prefix_cache(page, report["prefix_cache"])
    _print_what_if(page, report["what_if"])
    if report["notes"]:
        page.heading("Notes")
        for note in report["notes"]:
            page.text(note, indent=2, bullet="- ")


def _print_routes(page: Page, report: Mapping[str, Any]) -> None:
    refused = report["refused"]
    rows = [
        (
            route["route"],
            route["instance"],
            number(route["requests"]),
            _share(route["requests_share"]),
            number(route["prompt_tokens"]),
            _share(route["prompt_tokens_share"]),
            _tokens(route["output_tokens"]),
            number(route["cut_answers"]),
            _usd(route["usd"]),
        )
        for route in report["routes"]
    ]
    share = _share(refused["requests_share"])
    rows.append(("refused", "", number(refused["requests"]), share, *("",) * 5))
    page.heading("Routes")
    page.table(
        (
            "route",
            "instance",
            "requests",
            "share",
            "prompt tokens",
            "share",
            "generated",
            "cut",
            "USD",
        ),
        rows,
        right=range(2, 9),
    )
    if refused["requests"]:
        page.text(
            f"refused: {number(refused['prompt_tokens'])} prompt tokens, the longest "
            f"{number(refused['longest_prompt_tokens'])}",
            indent=2,
        )
    for key, what in (("retrieval", "by retrieval"), ("bounded_history", "with less history")):
        saved = report[key]
        if saved["requests"]:
            page.text(
                f"{what}: {counted(saved['requests'], 'request')}, "
                f"{number(saved['tokens_not_sent'])} tokens not sent",
                indent=2,
            )
    if any(route["cut_answers"] for route in report["routes"]):
        page.text("cut: prompt and answer are longer than max_model_len", indent=2)
    if report["usd"] is not None:
        cached = report["usd_with_prefix_cache"]
        page.text(
            f"{_usd(report['usd'])} USD in all"
            + ("" if cached is None else f", {_usd(cached)} with hits of the prefix cache"),
            indent=2,
        )


def _print_prefix_cache(page: Page, cache: Mapping[str, Any] | None) -> None:
    if cache is None:
        return
    one = cache["in_one_cache"]
    rows = [
        ("all requests in one cache", *_hits(one), _UNKNOWN, _UNKNOWN),
        *(
            (name, *_hits(row), _share(row["planned_hit_rate"]), _tokens(row["kv_cache_tokens"]))
            for name, row in (
                *((row["instance"], row) for row in cache["instances"]),
                ("all instances", {**cache["all_instances"], "kv_cache_tokens": None}),
            )
        ),
    ]
    page.heading("Prefix cache")
    page.table(
        ("cache", "requests", "prompt tokens", "hit rate", "in planned KV cache", "of tokens"),
        rows,
        right=range(1, 6),
    )


def _hits(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return number(row["requests"]), number(row["prompt_tokens"]), _share(row["hit_rate"])


def _print_what_if(page: Page, what_if: Mapping[str, Any]) -> None:
    page.heading(f"If {what_if['route']} took prompts up to")
    thresholds: Sequence[Mapping[str, Any]] = what_if["thresholds"]
    if not thresholds:
        page.text(what_if["reason"], indent=2)
        return
    names = [row["instance"] for row in thresholds[0]["instances"]]
    page.table(
        (
            "tokens",
            "which is",
            f"max_model_len of {what_if['instance']}",
            *(f"{name}: requests / tokens" for name in names),
            "refused",
            "USD",
        ),
        [
            (
                number(row["max_prompt_tokens"]),
                ", ".join(row["because"]),
                number(row["max_model_len"]),
                *(
                    f"{_share(each['requests_share'])} / {_share(each['prompt_tokens_share'])}"
                    for each in row["instances"]
                ),
                number(row["refused"]),
                _usd(row["usd"]),
            )
            for row in thresholds
        ],
        right=(0, 2, *range(3, 5 + len(names))),
    )


def _share(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.1%}"


def _tokens(count: int | None) -> str:
    return _UNKNOWN if count is None else number(count)


def _usd(amount: float | None) -> str:
    return _UNKNOWN if amount is None else f"{amount:,.2f}"
