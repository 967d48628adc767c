"""The answer of ``vllm-advisor observe`` in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import counted, duration, price, setting
from vllm_advisor.units import format_seconds

_LATENCIES = {"ttft": "TTFT", "itl": "ITL", "e2e": "end to end", "queue": "waiting"}
_STYLES = {"warning": "bold yellow", "info": "bold"}
_MOST_ENGINES = 16


def print_observed(report: Mapping[str, Any]) -> None:
    """Print what was observed for a person.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    version = f", vLLM {report['vllm_version']}" if report["vllm_version"] else ""
    page.text((f"{report['model'] or 'a model'} at {report['source']}", "bold"), version)
    _load(page, report)
    _sizes(page, report)
    _engines(page, report["engines"])
    _findings(page, report["findings"])
    _classes(page, report["classes"])
    _plan(page, report["plan"])
    if report["assumptions"] or report["notes"]:
        page.heading("What this takes for true")
        for text in (*report["assumptions"], *report["notes"]):
            page.text(text, indent=2, bullet="- ")


def _load(page: Page, report: Mapping[str, Any]) -> None:
    requests = report["requests"]
    since = " since the start" if report["since_start"] else ""
    peak = ""
    if requests["peak_per_second"] > requests["per_second"]:
        peak = (
            f", {requests['peak_per_second']:,.3g} in the busiest "
            f"{format_seconds(requests['peak_seconds'])}"
        )
    page.text(
        f"{requests['ended']:,.0f} requests ended in {format_seconds(report['seconds'])}{since}: "
        f"{requests['per_second']:,.3g} per second{peak}"
    )
    at_once = requests["at_once"]
    page.text(f"at once: {at_once['mean']:,.1f} on average, {at_once['largest']:,.0f} at most")
    reasons = ", ".join(f"{count:,.0f} {name}" for name, count in requests["by_reason"].items())
    page.text(f"ended by: {reasons}")
    cache = report["prefix_cache"]["hit_rate"]
    page.text(
        f"prefix cache: {'nothing looked up' if cache is None else f'{cache:.0%} of prompt tokens'}"
        f"; preemptions: {_count(report['preemptions'])}"
    )


def _sizes(page: Page, report: Mapping[str, Any]) -> None:
    rows = [
        (name, *(f"{found[key]:,.0f}" for key in ("mean", "p50", "p95", "p99")))
        for name, found in (
            ("prompt tokens", report["tokens"]["prompt"]),
            ("output tokens", report["tokens"]["output"]),
        )
        if found
    ]
    rows += [
        (_LATENCIES[name], *(duration(found[key]) for key in ("mean", "p50", "p95", "p99")))
        for name, found in report["latency_ms"].items()
    ]
    page.heading("Requests")
    page.table(("", "mean", "p50", "p95", "p99"), rows, right=(1, 2, 3, 4))


def _engines(page: Page, engines: Sequence[Mapping[str, Any]]) -> None:
    page.heading(f"Engines ({len(engines)})")
    rows = [
        (
            engine["name"] or "-",
            *(_both(engine[gauge], "{:,.1f}", "{:,.0f}") for gauge in ("running", "waiting")),
            _both(engine["kv_cache_usage"], "{:.1%}", "{:.1%}"),
        )
        for engine in engines[:_MOST_ENGINES]
    ]
    columns = ("mean / most", "running", "waiting", "KV cache used")
    page.table(columns, rows, right=(1, 2, 3))
    if len(engines) > _MOST_ENGINES:
        page.text(f"{len(engines) - _MOST_ENGINES} more with --format json", indent=2)


def _findings(page: Page, findings: Sequence[Mapping[str, Any]]) -> None:
    page.heading("What is found")
    if not findings:
        page.text("nothing is wrong with the load, as far as metrics show it", indent=2)
    for one in findings:
        page.text((f"{one['id']}: ", _STYLES[one["severity"]]), f"{one['message']}.", indent=2)
        page.text(f"{one['fix']}", indent=4, bullet="fix: ")


def _classes(page: Page, classes: Sequence[Mapping[str, Any]]) -> None:
    page.heading("As a workload")
    rows = [
        (
            each["name"],
            _tokens(each["prompt_tokens"]),
            _tokens(each["output_tokens"]),
            f"{each['requests_per_second']:g}",
            _reuse(each),
            _targets(each.get("slo") or {}),
        )
        for each in classes
    ]
    columns = ("class", "prompt p50/p95/max", "output", "per second", "reused", "targets (p95)")
    page.table(columns, rows, right=(3,))


def _plan(page: Page, plan: Mapping[str, Any]) -> None:
    page.heading("What a plan would change")
    if plan["why_not"]:
        fix = f". Fix: {plan['fix']}" if plan["fix"] else ""
        page.text(f"not planned: {plan['why_not']}{fix}", indent=2)
        return
    now = f"now {counted(plan['gpus_now'], 'GPU')} {plan['gpu']}, {price(plan['usd_per_hour_now'])}"
    if plan["gpus_assumed"]:
        page.text("one GPU for each engine is assumed: say how many with --gpu-count", indent=2)
    if not plan["feasible"]:
        page.text(f"{now}: they do not hold this load", indent=2)
        for reason in plan["because"]:
            page.text(reason, indent=2, bullet="- ")
        if plan["nearest"]:
            page.text(f"nearest: {plan['nearest']}", indent=2)
        return
    planned = f"{counted(plan['gpus_planned'], 'GPU')}, {price(plan['usd_per_hour_planned'])}"
    page.text(f"{now}; planned {planned}{_saved(plan['saves_usd_per_hour'])}", indent=2)
    for one in plan["instances"]:
        page.text(
            f"{one['name']} ({one['role']}): {counted(one['replicas'], 'replica')} of "
            f"{counted(one['gpus'], 'GPU')} for {', '.join(one['classes'])}",
            indent=2,
            bullet="- ",
        )
    rows = [
        (
            change["instance"],
            change["setting"],
            "not shown" if change["now"] is None else setting(change["now"]),
            setting(change["planned"]),
            change["reason"],
        )
        for change in plan["settings"]
    ]
    if rows:
        page.blank()
        page.table(("instance", "setting", "now", "planned", "reason"), rows)
    page.text(f"confidence {plan['confidence']}; plan the workload file for all of it", indent=2)


def _saved(usd: float | None) -> str:
    if not usd:
        return ""
    return f": saves ${usd:,.2f}/h" if usd > 0 else f": costs ${-usd:,.2f}/h more"


def _count(value: float | None) -> str:
    return "not counted" if value is None else f"{value:,.0f}"


def _both(level: Mapping[str, Any], mean: str, largest: str) -> str:
    if not level["readings"]:
        return "-"
    return f"{mean.format(level['mean'])} / {largest.format(level['largest'])}"


def _tokens(lengths: Mapping[str, int]) -> str:
    return " / ".join(f"{lengths[key]:,}" for key in ("p50", "p95", "max"))


def _reuse(each: Mapping[str, Any]) -> str:
    found = []
    if each.get("shared_prefix_tokens"):
        found.append(f"{each['shared_prefix_tokens']:,} tokens of all")
    if each.get("requests_per_document"):
        found.append(f"each document {each['requests_per_document']:g} times")
    return ", ".join(found) or "-"


def _targets(slo: Mapping[str, float]) -> str:
    found = [f"{name.removesuffix('_ms').upper()} {duration(ms)}" for name, ms in slo.items()]
    return ", ".join(found) or "-"
