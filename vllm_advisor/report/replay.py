"""What replayed requests went through, below an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import counted, duration, number

_OF = {
    "random": "arriving at random",
    "closed": "each following another at once",
    "trace": "as the trace has them",
}
_COLUMNS = ("mean", "p50", "p90", "p95", "p99")


def print_replay(page: Page, report: Mapping[str, Any]) -> None:
    """Print the distributions, beside what the formula says.

    Args:
        page: where to.
        report: an estimate with a replay, as plain data.
    """
    replay = report["replay"]
    page.heading(f"{counted(replay['requests'], 'request')} replayed, {_OF[replay['of']]}")
    if "trace" in replay:
        _print_trace(page, replay["trace"])
    times = (
        ("TTFT", report["ttft_ms"], replay["ttft_ms"]),
        ("per output token", report["tpot_ms"], replay["tpot_ms"]),
        ("between two tokens", report["tpot_ms"], replay["itl_ms"]),
        ("whole request", report["e2e_ms"], replay["e2e_ms"]),
    )
    rows = [
        (name, duration(formula["point"]), *(duration(seen[column]) for column in _COLUMNS))
        for name, formula, seen in times
        if seen is not None
    ]
    page.table(("", "estimate", *_COLUMNS), rows, right=range(1, 7))
    if replay["of"] == "closed":
        page.text("The estimate of TTFT counts requests that start together, the replay does not.")
    page.blank()
    tokens = number(float(replay["output_tokens_per_second"]))
    page.text(
        f"{number(float(replay['requests_per_second']))} requests/s and {tokens} output tokens/s "
        f"over {number(float(replay['seconds']))} s; {number(replay['running']['mean'])} requests "
        f"run at once (at most {replay['running']['max']:,}), {number(replay['waiting']['mean'])} "
        f"wait (at most {replay['waiting']['max']:,}); the KV cache is "
        f"{replay['kv_use']['mean']:.0%} full (at most {replay['kv_use']['max']:.0%}), "
        f"{counted(replay['preemptions'], 'preemption')}"
    )
    if replay["unstable"]:
        page.text(
            "More requests arrive than are served: the queue grew to the end, and the times only "
            "say how long the load went on."
        )


def _print_trace(page: Page, trace: Mapping[str, Any]) -> None:
    columns = ", ".join(f"{field} is {name}" for field, name in trace["columns"].items())
    ignored = ", ".join(trace["ignored_columns"])
    page.text(f"columns: {columns}" + (f"; ignored: {ignored}" if ignored else ""))
    left = {
        "without_tokens": "without a prompt or an answer were left out",
        "refused": "left out: the prompt is longer than max_model_len allows",
        "cut": "answered only up to max_model_len",
    }
    for key, what in left.items():
        if trace[key]:
            page.text(f"{counted(trace[key], 'request')} {what}")
