"""One GPU's memory as a bar with its legend, and the KV cache as vLLM's log has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import size

BAR_CELLS = 64
# Letters, so that the bar can be read without colours and in any encoding.
_PARTS = (
    ("weights", "W", "weights", "blue"),
    ("activations", "A", "activations", "magenta"),
    ("cuda_graphs", "G", "CUDA graphs", "yellow"),
    ("non_torch", "N", "non-torch", "red"),
    ("kv_cache", "K", "KV cache", "green"),
    ("unrequested", ".", "not requested", "dim"),
)


def print_memory(page: Page, memory: Mapping[str, int]) -> None:
    """A bar of one GPU's memory and what each letter in it stands for.

    Args:
        page: where to print.
        memory: bytes of one GPU, as reports have them under ``memory``.
    """
    spent = {**memory, "unrequested": memory["total"] - memory["requested"]}
    before, after = "  [", f"]  {size(memory['total'])} per GPU"
    width = min(BAR_CELLS, max(len(_PARTS), page.width - len(before + after)))
    cells = bar_cells([max(0, spent[key]) for key, *_ in _PARTS], width)
    bar = [
        (letter * count, style)
        for (_, letter, _, style), count in zip(_PARTS, cells, strict=True)
        if count
    ]
    page.verbatim(before, *bar, after)
    legend: list[str | tuple[str, str]] = []
    for key, letter, name, style in _PARTS:
        if spent[key]:
            legend += ["   " if legend else "", (letter, style), f" {name} {size(spent[key])}"]
    page.text(*legend, indent=2)


def bar_cells(amounts: list[int], width: int) -> list[int]:
    """Share ``width`` cells in proportion; what is there at all gets at least one cell.

    The cells sum to ``width`` unless nothing is there or there are more amounts than cells.
    """
    total = sum(amounts)
    if total == 0:
        return [0] * len(amounts)
    cells = [max(1, amount * width // total) if amount else 0 for amount in amounts]
    while sum(cells) < width:  # the largest remainder first
        rest = [
            amount * width - count * total for amount, count in zip(amounts, cells, strict=True)
        ]
        cells[rest.index(max(rest))] += 1
    while sum(cells) > width and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return cells


def print_kv_cache(page: Page, figures: Mapping[str, Any]) -> None:
    """The line vLLM prints at start, or why it would not start.

    Args:
        page: where to print.
        figures: a dict with ``kv_cache``, ``max_model_len``, ``fits`` and ``refusal``.
    """
    cache, length = figures["kv_cache"], figures["max_model_len"]
    if figures["fits"] and not cache["groups"]:
        page.text("No KV cache: every token sees every other, and nothing is kept.", indent=2)
        return
    if figures["fits"]:
        page.text(
            f"GPU KV cache size: {cache['tokens']:,} tokens, Maximum concurrency for "
            f"{length['configured']:,} tokens per request: ",
            (f"{cache['max_concurrency']:.2f}x", "bold"),
            indent=2,
        )
        if cache.get("engines", 1) > 1:
            page.text(
                f"in each of {cache['engines']} data-parallel engines; over all of them "
                f"{cache['total_tokens']:,} tokens, ",
                (f"{cache['total_concurrency']:.2f}x", "bold"),
                indent=2,
            )
        return
    page.text(("vLLM would refuse to start: ", "red"), figures["refusal"], indent=2)
