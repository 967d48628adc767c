"""The answer of ``vllm-advisor calibrate`` in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.console import Cell, Page
from vllm_advisor.report.values import counted, number, setting

_QUANTITIES = (
    ("tpot_ms", "per output token"),
    ("output_tokens_per_second", "output tokens/s"),
    ("ttft_ms", "TTFT"),
)
_ERRORS = {
    "tpot": "per output token",
    "throughput": "output tokens/s",
    "ttft": "TTFT",
    "ttft_unloaded": "TTFT, at most 4 requests at once",
    "tpot_limited": "per output token, requests wait for a place",
    "throughput_limited": "output tokens/s, requests wait for a place",
    "ttft_limited": "TTFT, requests wait for a place",
}
_TIMES = ("layer", "step", "request")


def print_calibration(report: Mapping[str, Any]) -> None:
    """Print a calibration for a person.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    gpus = f"{report['gpus']} x {report['gpu']}" if report["gpus"] > 1 else report["gpu"]
    runs = report["measurements"]
    page.text((f"{report['model']} on {gpus}", "bold"), f", {counted(len(runs), 'measurement')}")
    given = "  ".join(f"{dest}={setting(v)}" for dest, v in report["engine_args"].items())
    page.text(f"vLLM {report['vllm_version']}" + (f"  {given}" if given else ""))
    page.blank()
    columns = ("measurement", "", "measured", "before", "after")
    page.table(columns, [_run(run) for run in runs], right=(2, 3, 4))
    page.heading("Constants")
    if report["constants"]:
        moved = [_constant(name, found) for name, found in report["constants"].items()]
        page.table(("", "before", "after", "change"), moved, right=(1, 2, 3))
    else:
        page.text("none moved", indent=2)
    page.heading("Median error")
    page.table(
        ("", "before", "after", "measurements"),
        [
            (_ERRORS[name], f"{e['before']:.1%}", f"{e['after']:.1%}", number(e["measurements"]))
            for name, e in report["errors"].items()
        ],
        right=(1, 2, 3),
    )
    page.blank()
    for note in report["notes"]:
        page.text(note, indent=2, bullet="- ")
    page.text(f"Started from {report['started_from']}", indent=2, bullet="- ")


def _run(run: Mapping[str, Any]) -> tuple[Cell, ...]:
    """A line for each quantity beside the measurement's name, load and lengths."""
    load = (
        f"{number(float(run['request_rate']))} requests/s"
        if "request_rate" in run
        else f"{run['concurrency']:g} at once"
    )
    tokens = f"{run['input_tokens']:,.0f} in, {run['output_tokens']:,.0f} out"
    given = [(label, run[key]) for key, label in _QUANTITIES if key in run]
    shown = {"output tokens/s": _rate}
    columns = (
        tuple(shown.get(label, _time)(found[which]) for label, found in given)
        for which in ("measured", "before", "after")
    )
    return (run["source"], f"{load}, {tokens}"), tuple(label for label, _ in given), *columns


def _constant(name: str, found: Mapping[str, float]) -> tuple[str, str, str, str]:
    def show(value: float) -> str:
        if name not in _TIMES:
            return f"{value:.4g}"
        return f"{value * 1e3:.4g} ms" if value >= 1e-3 else f"{value * 1e6:.4g} us"

    change = found["after"] / found["before"] - 1
    return name, show(found["before"]), show(found["after"]), f"{change:+.1%}"


def _time(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:,.2f} s"
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


def _rate(value: float) -> str:
    return f"{value:,.0f}"
