"""How values look to a person."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.units import format_bytes


def number(value: float) -> str:
    """Thousands separated; two decimals where they say something."""
    exact = isinstance(value, int)
    return f"{value:,}" if exact else f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def size(value: float | None) -> str:
    """Bytes as ``16.00 GiB``; a dash when unknown."""
    return "-" if value is None else format_bytes(int(value))


def price(usd_per_hour: float | None) -> str:
    """``$7.35/h``, or that no price is known."""
    return "price unknown" if usd_per_hour is None else f"${usd_per_hour:,.2f}/h"


def duration(milliseconds: float | None) -> str:
    """``41.3 ms``, ``413 ms`` or ``4.13 s``; a dash when unknown."""
    if milliseconds is None:
        return "-"
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:,.2f} s"
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


def counted(count: int, noun: str) -> str:
    """``1 replica``, ``2 replicas``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def cell(value: Any, key: str = "") -> str:
    """Any JSON value in a table; a key that speaks of bytes or memory makes a size of a number."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        is_size = not {"bytes", "memory"}.isdisjoint(key.split("_"))
        return size(value) if is_size else number(value)
    if key == "compute_capability" and isinstance(value, list | tuple):
        return ".".join(str(part) for part in value)
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {cell(item, str(name))}" for name, item in value.items())
    return str(value)


def setting(value: Any) -> str:
    """A decision's value: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def print_rows(page: Page, rows: Iterable[Mapping[str, Any]]) -> None:
    """A table of rows that bring their own columns, in the order in which keys first appear."""
    rows = list(rows)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shown = [[cell(row.get(key), key) for key in keys] for row in rows]
    numeric = [
        index
        for index, key in enumerate(keys)
        if all(isinstance(row.get(key), int | float | None) for row in rows)
    ]
    page.table([key.removesuffix("_bytes").replace("_", " ") for key in keys], shown, right=numeric)


def print_command(page: Page, command: str, *, indent: int = 2) -> None:
    """A shell command over several lines, each as full as fits, joined with backslashes."""
    lines: list[str] = []
    for words in _arguments(shlex.split(command)):
        group = shlex.join(words)
        fits = lines and len(lines[-1]) + len(group) + indent + 3 <= page.width
        if fits:
            lines[-1] += f" {group}"
        else:
            lines.append(group if not lines else f"    {group}")
    for line in lines[:-1]:
        _print_raw(page, f"{' ' * indent}{line} \\")
    _print_raw(page, f"{' ' * indent}{lines[-1]}")


def _print_raw(page: Page, text: str) -> None:
    """Lines of a command; a newline inside a quoted word has to stay one."""
    for line in text.split("\n"):
        page.verbatim((line, "cyan"))


def _arguments(words: Sequence[str]) -> list[list[str]]:
    """``vllm serve MODEL``, then each flag with its values."""
    groups = [list(words[:3])]
    for word in words[3:]:
        if word.startswith("--"):
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups
