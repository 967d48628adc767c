"""The answer of ``vllm-advisor estimate`` in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.replay import print_replay
from vllm_advisor.report.values import counted, duration, number, setting

_REGIMES = {
    "kv-limited": "requests wait for KV cache",
    "seq-limited": "requests wait for one of max_num_seqs places",
    "prefill-bound": "steps are full of prompts",
    "compute-bound": "the arithmetic of running requests takes longest",
    "bandwidth-bound": "reading weights and KV cache takes longest",
    "overhead-bound": "launches and exchanges between GPUs take longest",
}


def print_estimate(report: Mapping[str, Any]) -> None:
    """Print an estimate for a person.

    Args:
        report: the report as plain data, as ``--format json`` prints it.
    """
    page = Page()
    gpus = f"{report['gpus']} x {report['gpu']}" if report["gpus"] > 1 else report["gpu"]
    page.text((f"{report['model']} on {gpus}", "bold"), f", confidence {report['confidence']}")
    given = "  ".join(f"{dest}={setting(v)}" for dest, v in report["engine_args"].items())
    page.text(f"vLLM {report['vllm_version']}" + (f"  {given}" if given else ""))
    page.text(_load(report["load"]))
    page.blank()
    first, itl = report["ttft_ms"], report["itl_ms"]
    rows = [
        ("TTFT, alone", duration(first["floor"]), ""),
        ("TTFT, mean", duration(first["point"]), _range(first, duration)),
        (
            "TTFT, half of the requests",
            duration(first["p50"]["point"]),
            _range(first["p50"], duration),
        ),
        ("TTFT, nine of ten", duration(first["p90"]["point"]), _range(first["p90"], duration)),
        (
            "per output token",
            duration(report["tpot_ms"]["point"]),
            _range(report["tpot_ms"], duration),
        ),
        ("  while a prompt is read", duration(itl["with_prompt"]), _steps(itl)),
        ("whole request", duration(report["e2e_ms"]["point"]), _range(report["e2e_ms"], duration)),
        _rate("output tokens/s", report["output_tokens_per_second"]),
        _rate("input and output tokens/s", report["total_tokens_per_second"]),
        ("requests/s", number(float(report["requests_per_second"])), ""),
    ]
    page.table(("", "estimate", "eight of ten measurements"), rows, right=(1,))
    page.blank()
    waiting = f", {number(report['waiting'])} wait" if report["waiting"] else ""
    page.text(
        f"{number(report['running'])} requests run at once{waiting}: ",
        (report["regime"], "bold"),
        f" ({_REGIMES[report['regime']]})",
    )
    if report["saturated"]:
        page.text(
            "More requests arrive than are served: they wait without end. The throughput is the "
            "most there is."
        )
    for note in report["not_modelled"]:
        page.text(note, indent=2, bullet="- ")
    for note in report.get("memory_calibration", {}).get("notes", ()):
        page.text(note, indent=2, bullet="- ")
    if "second_opinion" in report:
        _second_opinion(page, report)
    constants = report["constants"]
    page.text(f"Fitted to {constants['origin']} ({constants['date']})", indent=2, bullet="- ")
    if "replay" in report:
        print_replay(page, report)


def _second_opinion(page: Page, report: Mapping[str, Any]) -> None:
    """What another tool says beside our points."""
    other = report["second_opinion"]
    name = f"{other['tool']} {other['version']}"
    if not other["answered"]:
        page.text(f"{name} has no answer: {other['reason']}", indent=2, bullet="- ")
        return
    ours = report["ttft_ms"], report["tpot_ms"], report["output_tokens_per_second"]
    first, each, rate = (span["point"] for span in ours)
    rows = [
        ("TTFT, mean", duration(first), duration(other["ttft_ms"])),
        ("per output token", duration(each), duration(other["tpot_ms"])),
        ("output tokens/s", f"{rate:,.0f}", f"{other['output_tokens_per_second']:,.0f}"),
    ]
    page.blank()
    page.table(("second opinion", "estimate", name), rows, right=(1, 2))
    page.text(f"{name} has measurements of {other['data']}", indent=2, bullet="- ")


def _load(load: Mapping[str, Any]) -> str:
    tokens = f"{number(load['input_tokens'])} tokens in, {number(load['output_tokens'])} out"
    if "request_rate" in load:
        said = f"{number(float(load['request_rate']))} requests/s, {tokens}"
    else:
        said = f"{counted(int(load['concurrency']), 'request')} at once, {tokens}"
    hit = load.get("prefix_hit_rate")
    said += f", {hit:.0%} of the prompt cached" if hit else ""
    shared = load.get("replicas")
    return f"{said}, over {shared:,} replicas" if shared else said


def _range(span: Mapping[str, Any], show: Any) -> str:
    if span["low"] is None or span["low"] == span["high"]:
        return ""
    return f"{show(span['low'])} to {show(span['high'])}"


def _rate(name: str, span: Mapping[str, Any]) -> tuple[str, str, str]:
    def show(value: float) -> str:
        return f"{value:,.0f}"

    return name, show(span["point"]), _range(span, show)


def _steps(itl: Mapping[str, Any]) -> str:
    return f"{itl['share_with_prompt']:.0%} of the steps"
