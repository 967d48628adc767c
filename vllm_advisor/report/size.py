"""The answer of ``vllm-advisor size`` in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.memory import print_kv_cache, print_memory
from vllm_advisor.report.values import cell, number, print_rows, setting, size

_VERDICTS = {
    "fits": ("fits", "bold green"),
    "no_headroom": ("starts, but without headroom", "bold yellow"),
    "refused": ("does not start", "bold red"),
}


def print_size(report: Mapping[str, Any]) -> None:
    """Print a size report for a person.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    gpu = _gpu(report.get("gpu"))
    verdict, style = _VERDICTS.get(report["verdict"], (str(report["verdict"]), "bold"))
    page.text(
        (f"{report['model']}{f' on {gpu}' if gpu else ''}: ", "bold"),
        (verdict, style),
        (f", confidence {report['confidence']}", "bold"),
    )
    given = "  ".join(f"{dest}={setting(v)}" for dest, v in report["engine_args"].items())
    page.text(f"vLLM {report['vllm_version']}" + (f"  {given}" if given else ""))
    if report.get("calibration"):
        page.text(_calibration(report["calibration"]))
    page.blank()
    if report["memory"]:
        print_memory(page, report["memory"])
    print_kv_cache(page, report)
    _print_cache(page, report)
    _print_changes(page, report["changes"])
    _print_training(page, report.get("training") or ())
    _print_retention(page, report.get("retention") or ())
    if report.get("attention_cost"):
        page.heading("Cost of attention")
        print_rows(page, report["attention_cost"])
    _print_assumptions(page, report["assumptions"])


def _gpu(gpu: Any) -> str:
    """The GPU's name, from a name or from a dict that has it."""
    if isinstance(gpu, Mapping):
        name, count = str(gpu.get("name", "")), gpu.get("count", 1)
        return f"{count} x {name}" if name and count != 1 else name
    return str(gpu) if gpu else ""


def _calibration(log: Mapping[str, Any]) -> str:
    """Which figures a log says, in one line; the assumptions have the rest."""
    names = {"cuda_graphs": "CUDA graphs", "non_torch": "non-torch"}
    figures = [names.get(name, name) for name in log["applied"] if name != "total"]
    said = ", ".join(figures) or "nothing of it applies here"
    return f"calibrated by {log['file']} ({log['date']}): {said}"


def _print_cache(page: Page, report: Mapping[str, Any]) -> None:
    cache, length = report["kv_cache"], report["max_model_len"]
    per_token = cache["bytes_per_token"]
    if not cache["groups"]:
        page.text(
            f"Context: {number(length['configured'])} tokens set; the model goes to "
            f"{number(length['derived_limit'])}",
            indent=2,
        )
        return
    page.text(
        f"KV cache: {number(cache['num_gpu_blocks'])} blocks of "
        f"{number(cache['block_size'])} tokens, "
        + (f"{size(per_token)} per token and GPU, " if per_token is not None else "")
        + f"{size(cache['request_bytes'])} for a request of {number(length['configured'])} tokens",
        indent=2,
    )
    page.text(
        f"Context: {number(length['configured'])} tokens set; the model goes to "
        f"{number(length['derived_limit'])}; memory would hold {number(length['fits'])}",
        indent=2,
    )
    if cache["groups"]:
        page.heading("KV cache groups")
        print_rows(page, cache["groups"])


def _print_training(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    """One table for each convention, whose name is too long for a column."""
    for convention, its_rows in groupby(rows, lambda row: str(row["convention"])):
        page.heading(f"Training, {convention}")
        print_rows(page, [_only(row, "component", "bytes", "formula") for row in its_rows])


def _print_retention(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    """What is kept as a table; how vLLM does it, and what comes near, as sentences below."""
    if not rows:
        return
    page.heading("What stays in the KV cache")
    needles = [key for key in rows[0] if key.startswith("needle")]
    print_rows(page, [_only(row, "policy", "kept_tokens", "bytes", *needles) for row in rows])
    for row in rows:
        nearest = f"; nearest: {cell(row['nearest'])}" if row["nearest"] else ""
        page.text(f"{row['policy']}: {row['vllm']}{nearest}", indent=2, bullet="- ")


def _only(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: row[key] for key in keys}


def _print_changes(page: Page, changes: Sequence[Mapping[str, Any]]) -> None:
    """Single changes that make it start, or make it hold more; each was sized again."""
    if not changes:
        return
    page.heading("What would help")
    for change in changes:
        page.text(
            (f"{change['flags']}: ", "bold"),
            f"{number(change['tokens'])} tokens, {change['max_concurrency']:.2f}x; "
            f"costs {change['costs']}",
            indent=2,
            bullet="- ",
        )


def _print_assumptions(page: Page, assumptions: Sequence[Any]) -> None:
    if not assumptions:
        return
    page.heading("Assumptions")
    for assumption in assumptions:
        text = assumption["text"] if isinstance(assumption, Mapping) else str(assumption)
        page.text(text, indent=2, bullet="- ")
