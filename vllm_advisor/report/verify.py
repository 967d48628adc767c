"""What ``vllm-advisor verify`` found, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Cell, Page
from vllm_advisor.report.values import cell

_STYLES = {
    "hit": "bold green",
    "miss": "bold red",
    "refused": "bold yellow",
    "ok": "green",
    "wrong": "bold red",
    "failed": "bold red",
    "unknown": "bold yellow",
}


def print_needle(result: Mapping[str, Any]) -> None:
    """Print hits by depth and length, and what was answered instead.

    Args:
        result: as ``--format json`` prints it.
    """
    page = Page()
    cells: Sequence[Mapping[str, Any]] = result["cells"]
    verdict = "passed" if result["passed"] else "failed"
    page.text(
        (f"{verdict}: {result['hits']} of {len(cells)} needles found", "bold"),
        f" by {result['model']} at {result['base_url']} in {result['document']}",
    )
    page.blank()
    lengths = list(dict.fromkeys(c["length"] for c in cells))
    depths = list(dict.fromkeys(c["depth"] for c in cells))
    by_place = {(c["depth"], c["length"]): c for c in cells}
    page.table(
        ("depth", *(f"{cell(length)} tokens" for length in lengths)),
        [
            (f"{depth:g} %", *(_hit(by_place[depth, length]) for length in lengths))
            for depth in depths
        ],
    )
    _print_list(page, "What was answered instead", [_told(c) for c in cells if not c["hit"]])
    _print_list(page, "Assumptions", result["assumptions"])
    _print_list(page, "Notes", result["notes"])


def print_routes(result: Mapping[str, Any]) -> None:
    """Print each probe with where it was expected and where it landed.

    Args:
        result: as ``--format json`` prints it.
    """
    page = Page()
    probes: Sequence[Mapping[str, Any]] = result["probes"]
    verdict = "passed" if result["passed"] else "failed"
    right = sum(probe["verdict"] == "ok" for probe in probes)
    page.text(
        (f"{verdict}: {right} of {len(probes)} probes landed as planned", "bold"),
        f" at {result['base_url']} (plan {result['plan']})",
    )
    page.blank()
    page.table(
        ("probe", "tokens", "expected", "landed", "known by", "verdict"),
        [
            (
                _probe(probe),
                cell(probe["prompt_tokens"]),
                cell(probe["expected"]),
                cell(probe["landed"]),
                cell(probe["by"]),
                ((probe["verdict"], _STYLES.get(probe["verdict"], "")),),
            )
            for probe in probes
        ],
        right=(1,),
    )
    details = [f"{_probe(p)}: {p['detail']}" for p in probes if p["detail"]]
    _print_list(page, "Details", details)
    _print_list(page, "Notes", result["notes"])


def _hit(found: Mapping[str, Any]) -> Cell:
    """The outcome, and beneath it the tokens as the server counted them."""
    outcome = found["outcome"]
    tokens = found["prompt_tokens"]
    counted = f"{cell(tokens)} counted" if tokens is not None else ""
    return ((outcome, _STYLES[outcome]), counted)


def _told(found: Mapping[str, Any]) -> str:
    place = f"{cell(found['length'])} tokens, depth {found['depth']:g} %"
    if found["outcome"] == "refused":
        return f"{place}: refused: {found['refusal']}"
    if found["reasoning"] is not None:
        return f"{place}: nothing; its reasoning: {found['reasoning']}"
    return f"{place}: {found['answer'] or 'nothing'}"


def _probe(probe: Mapping[str, Any]) -> str:
    asked = probe["asked"]
    by_kind = {"header": asked["header"], "model": asked["model"]}
    return f"{probe['kind']} {by_kind.get(probe['kind']) or cell(asked['tokens'])}"


def _print_list(page: Page, title: str, lines: Sequence[str]) -> None:
    if lines:
        page.heading(title)
        for line in lines:
            page.text(line, indent=2, bullet="- ")
