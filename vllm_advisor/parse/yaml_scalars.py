"""Where the characters of a YAML scalar are written: in a block, over several lines, escaped.

The parser tells where a scalar begins and ends, and its value. Between the two, all styles but one
only add and drop white space (and double a single quote), so that the other characters follow each
other in the text as in the value; a double-quoted scalar has escapes as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.parse.placed import PlacedText, Span

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor, a tag
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_REWRITTEN = re.compile("[\r\n\x85\u2028\u2029\\\\]|''")  # beside blanks, all that may differ
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\r\n|.)", re.DOTALL)
_SILENT_ESCAPES = " \t\r\n\x85\u2028\u2029_NLPnt rvfabe0"  # white space, or none at all


def placed_text(written: str, value: str, file: str, *, line: int, column: int) -> PlacedText:
    """The value of a scalar with its places.

    Args:
        written: the scalar as it stands in the file, from its first character or its anchor on.
        value: what the parser makes of it.
        file: the file's name.
        line: line of the first character, from 0.
        column: its column, from 0.
    """
    properties = _PROPERTIES.match(written)
    begun = properties.end() if properties else 0
    style = written[begun : begun + 1]
    if style in ("|", ">"):
        header = _BREAK.search(written, begun)
        begun = header.end() if header else len(written)
    elif style in ("'", '"'):
        begun += 1
    spans = [Span(0, line + 1, column + 1 + begun)]
    if not _REWRITTEN.search(written, begun):
        return PlacedText(value, file, tuple(spans))
    rows = [0, *(match.end() for match in _BREAK.finditer(written))]
    marks = _visible(written, begun, style)
    row, shift = 0, None  # of the last span
    for offset, char in enumerate(value):
        if char.isspace() or not char.isprintable():
            continue
        at = next(marks, None)
        if at is None:
            break
        here = row
        while here + 1 < len(rows) and rows[here + 1] <= at:
            here += 1
        if shift == at - offset and here == row:
            continue
        left = at - rows[here] + (column if here == 0 else 0)
        span = Span(offset, line + 1 + here, left + 1)
        if shift is None:  # what is before it are blanks
            spans = [span._replace(offset=0)]
        if shift is not None or offset:
            spans.append(span)
        row, shift = here, at - offset
    return PlacedText(value, file, tuple(spans))


def _visible(written: str, position: int, style: str) -> Iterator[int]:
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
