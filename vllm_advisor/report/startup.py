"""The answer of ``vllm-advisor report`` in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import counted, setting
from vllm_advisor.units import GIB

_OUTCOMES = {
    "started": ("started", "bold green"),
    "refused": ("did not start", "bold red"),
    "not said": ("the log ends before it says whether it started", "bold yellow"),
}
_NAMES = {
    "gpu_name": "GPU",
    "architecture": "architecture",
    "attention_backend": "attention backend",
    "max_model_len": "max_model_len",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "total": "GPU memory",
    "free_at_start": "free at start",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "requested": "requested",
    "weights": "weights",
    "load_seconds": "loading",
    "consumed": "weights and non-torch",
    "non_torch": "non-torch",
    "activations": "peak activation",
    "activations_and_graphs": "peak activation, with CUDA graphs",
    "cuda_graphs_estimate": "CUDA graphs, estimate",
    "cuda_graphs_captured": "CUDA graphs, captured",
    "capture_seconds": "capturing",
    "kv_cache": "KV cache memory",
    "kv_cache_in_use": "KV cache memory in use",
    "kv_tokens": "KV cache tokens",
    "num_gpu_blocks": "GPU blocks",
    "max_concurrency": "maximum concurrency",
    "engine_seconds": "engine start",
}
_MOST_WARNINGS = 8
_CUT = 160  # characters of a warning


def print_startup(report: Mapping[str, Any]) -> None:
    """Print a report of a start-up log for a person.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    logged = report["logged"]
    outcome, style = _OUTCOMES[report["outcome"]]
    gpu = f" on {report['gpu']}" if report["gpu"] else ""
    name = logged["model"] or report["model"] or "unnamed model"
    other = f" (as {report['model']})" if report["model"] not in (None, name) else ""
    page.text((f"{name}{other}{gpu}: ", "bold"), (outcome, style))
    version = f"vLLM {logged['version'] or report['vllm_version'] or 'of unknown version'}"
    page.text(f"{version}, {counted(logged['lines'], 'line')}", _of_starts(logged))
    given = "  ".join(f"{dest}={setting(v)}" for dest, v in report["engine_args"].items())
    if given:
        where = logged["arguments_line"]
        page.text(f"arguments{f' (line {where})' if where else ''}: {given}")
    if logged["arguments_not_shown"]:
        page.text(f"not shown: {', '.join(logged['arguments_not_shown'])}")
    _refusals(page, report)
    _comparison(page, report)
    _facts(page, logged["facts"])
    _warnings(page, logged["warnings"])
    cited = " ".join(fix for one in report["refusals"] for fix in one["fixes"])
    errors = [f for f in report["findings"] if f["severity"] == "error"]
    findings = [f for f in errors if f"[{f['rule']}]" not in cited]
    if findings:
        page.heading("What check finds in these arguments")
        for finding in findings:
            fix = f" Fix: {finding['fix']}" if finding["fix"] else ""
            page.text(f"{finding['rule']}: {finding['message']}.{fix}", indent=2, bullet="- ")
    _missing(page, report)


def _of_starts(logged: Mapping[str, Any]) -> str:
    if logged["starts"] == 1:
        return ""
    return f"; the last of {logged['starts']} starts, from line {logged['first_line']}"


def _refusals(page: Page, report: Mapping[str, Any]) -> None:
    if not report["refusals"]:
        return
    page.heading("Why it did not start" if report["outcome"] == "refused" else "Errors")
    for one in report["refusals"]:
        page.text((f"line {one['line']}: ", "red"), one["text"], indent=2)
        page.text(one["meaning"], indent=4)
        for fix in one["fixes"]:
            page.text(fix, indent=4, bullet="fix: ")


def _comparison(page: Page, report: Mapping[str, Any]) -> None:
    terms = report["comparison"]
    if not terms:
        return
    page.heading("Predicted and logged")
    rows = [
        (
            term["term"],
            _amount(term["predicted"], term["unit"]),
            _amount(term["logged"], term["unit"]),
            _difference(term),
            str(term["line"] or ""),
        )
        for term in terms
    ]
    page.table(("", "predicted", "logged", "difference", "line"), rows, right=(1, 2, 3, 4))
    if report["comparison_summary"]:
        page.text(report["comparison_summary"], indent=2, bullet="- ")
    notes = dict.fromkeys(
        f"{term['term']}: {term['note']}"
        for term in terms
        if term["note"] and not term["note"].startswith("of ")
    )
    for note in notes:
        page.text(note, indent=2, bullet="- ")
    if report["confidence"]:
        page.text(f"confidence {report['confidence']}", indent=2, bullet="- ")
    for assumption in report["assumptions"]:
        page.text(assumption, indent=2, bullet="- ")


def _facts(page: Page, facts: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for fact_id, name in _NAMES.items():
        found = [fact for fact in facts if fact["id"] == fact_id]
        if not found:
            continue
        values = list(dict.fromkeys(_amount(fact["value"], fact["unit"]) for fact in found))
        lines = list(dict.fromkeys(str(fact["line"]) for fact in found))
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        shown = ", ".join(values[:4]) + (", ..." if len(values) > 4 else "")
        length = next((f["value"] for f in facts if f["id"] == "concurrency_tokens"), None)
        if fact_id == "max_concurrency" and length is not None:
            shown += f" of {length:,} tokens"
        rows.append((name, shown, ", ".join(lines[:3]) + more))
    if rows:
        page.heading("What the log says")
        page.table(("", "", "line"), rows)


def _warnings(page: Page, warnings: Sequence[Mapping[str, Any]]) -> None:
    if not warnings:
        return
    page.heading(f"Warnings ({len(warnings)})")
    for one in warnings[:_MOST_WARNINGS]:
        times = f" ({one['count']} times)" if one["count"] > 1 else ""
        text = one["text"] if len(one["text"]) <= _CUT else one["text"][:_CUT].rstrip() + " ..."
        page.text(f"line {one['line']}: {text}{times}", indent=2)
    if len(warnings) > _MOST_WARNINGS:
        page.text(f"{len(warnings) - _MOST_WARNINGS} more with --format json", indent=2)


def _missing(page: Page, report: Mapping[str, Any]) -> None:
    why = report["not_compared"]
    if not why and not report["missing"]:
        return
    page.heading("Not compared")
    for one in report["missing"]:
        page.text(f"{one['reason']}. Fix: {one['fix']}", indent=2, bullet="- ")
    if why and why != "; ".join(one["reason"] for one in report["missing"]):
        fix = report["not_compared_fix"]
        page.text(why + (f". Fix: {fix}" if fix else ""), indent=2, bullet="- ")


def _amount(value: Any, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "text":
        return str(value)
    if unit == "bytes":
        return f"{value / GIB:,.2f} GiB"
    if unit == "seconds":
        return f"{value:,.1f} s"
    if unit == "requests":
        return f"{value:,.2f}x"
    return f"{value:,}"


def _difference(term: Mapping[str, Any]) -> str:
    difference, share = term["difference"], term["difference_percent"]
    if term["unit"] == "text":
        known = term["predicted"] is not None and term["logged"] is not None
        return ("same" if term["predicted"] == term["logged"] else "other") if known else ""
    if difference is None:
        return ""
    if difference == 0:
        return "same"
    if term["unit"] == "bytes":
        shown = f"{difference / GIB:+.2f} GiB"
        if round(difference / GIB, 2) == 0:  # the log rounds to so much
            return "same"
    elif term["unit"] == "requests":
        if round(difference, 2) == 0:
            return "same"
        shown = f"{difference:+.2f}"
    else:
        shown = f"{difference:+,}"
    if share is None:
        return shown
    # So near to nothing that its sign says nothing.
    return f"{shown} ({share:+.1f} %)" if round(share, 1) else f"{shown} (0.0 %)"
