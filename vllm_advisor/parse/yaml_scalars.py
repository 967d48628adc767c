"""Where the characters of a YAML scalar are written: in a block, over several lines, escaped.

The parser tells where a scalar begins and ends, and its value. Between the two, all styles but one
only add and drop white space (and double a single quote), so that the other characters follow each
other in the text as in the value; a double-quoted scalar has escapes as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vllm_advisor.parse.placed import PlacedText, Span

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_ESCAPE = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\r\n|.)", re.DOTALL
)
_SILENT_ESCAPES = " \t\r\n\x85\u2028\u2029_NLPnt rvfabe0"  # white space, or none at all


def placed_text(source: str, node: Any, file: str) -> PlacedText:
    """The value of a scalar node with its places.

    Args:
        source: the whole YAML text.
        node: PyYAML's node.
        file: the file's name.
    """
    start, end = node.start_mark, node.end_mark
    value = str(node.value)
    spans = [Span(0, start.line + 1, start.column + 1)]
    written = source[start.index : end.index]
    style = node.style
    if style in ("|", ">"):
        header = _BREAK.search(written)
        written_from = header.end() if header else len(written)
    else:
        written_from = 1 if style in ("'", '"') else 0
    if "\n" not in value and len(_BREAK.findall(written)) == 0 and style != '"':
        spans[0] = Span(0, start.line + 1, start.column + 1 + written_from)
        return PlacedText(value, file, tuple(spans))
    rows = [0, *(match.end() for match in _BREAK.finditer(written))]
    marks = _visible(written, written_from, style)
    row, expected = 0, None
    for offset, char in enumerate(value):
        if char.isspace() or not char.isprintable():
            continue
        at = next(marks, None)
        if at is None:
            break
        if expected is not None and at - offset == expected:
            continue
        while row + 1 < len(rows) and rows[row + 1] <= at:
            row += 1
        column = at - rows[row] + (start.column if row == 0 else 0)
        span = Span(offset, start.line + 1 + row, column + 1)
        spans = [span._replace(offset=0)] if expected is None else [*spans, span]
        expected = at - offset
    return PlacedText(value, file, tuple(spans))


def _visible(written: str, position: int, style: str | None) -> Iterator[int]:
    """Positions of what becomes a printable character of the value that is no white space."""
    while position < len(written):
        char = written[position]
        if style == '"' and char == "\\":
            escape = _ESCAPE.match(written, position)
            length = len(escape[0]) if escape else 1
            if length > 2 and written[position + 1] in "xuU":
                made = chr(min(int(written[position + 2 : position + length], 16), 0x10FFFF))
                if made.isprintable() and not made.isspace():
                    yield position
            elif length > 1 and written[position + 1] not in _SILENT_ESCAPES:
                yield position
            position += length
            continue
        if not char.isspace() and char.isprintable():
            yield position
            position += style == "'" and written.startswith("''", position)
        position += 1
