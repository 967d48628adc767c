"""Text inside Markdown: nothing a person wrote may become markup, a table cell or HTML."""

from __future__ import annotations

import re

from vllm_advisor.visible import visible

_ACTIVE = re.compile(r"[\\`*\[\]<>|&~$]")
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word it is literal
_BLOCK_START = re.compile(r"(?:[-+#=]|[0-9]+(?=[.)](?:\s|$)))")
_BACKTICKS = re.compile("`+")


def markdown(text: object) -> str:
    """Text for a paragraph, a list item or a table cell, with every active character escaped."""
    escaped = _ACTIVE.sub(r"\\\g<0>", visible(str(text)).strip())
    escaped = _EDGE_UNDERSCORE.sub(r"\\_", escaped)
    start = _BLOCK_START.match(escaped)
    if start is None:
        return escaped
    if start[0].isdecimal():  # "1." would open a list
        return f"{start[0]}\\{escaped[start.end() :]}"
    return f"\\{escaped}"


def code_span(text: object) -> str:
    """Text in backticks. Not for table cells, where a pipe ends the cell even inside code."""
    shown = visible(str(text)).strip()
    if not shown:
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def code_block(text: str, language: str = "") -> str:
    """Text in a fence longer than any run of backticks inside it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
