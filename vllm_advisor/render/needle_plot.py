"""Where a model found its needles, as an SVG: one field for each depth and length."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.render.jinja import render_template

# Okabe and Ito's palette, which people who confuse colours can tell apart; words say it as well.
_FILLS = {"hit": "#0072b2", "miss": "#e69f00", "refused": "#cccccc"}
_INKS = {"hit": "#ffffff", "miss": "#000000", "refused": "#000000"}
_FIELD_WIDTH = 96
_FIELD_HEIGHT = 48
_LEFT = 96  # room for the depths
_RIGHT = 24
_BELOW = 64  # room for the lengths
_LINE = 22
_LETTER = 8.5  # average width of a letter of the title
_LEAST_WIDTH = 480


def needle_svg(result: Mapping[str, Any]) -> str:
    """The picture, as text.

    Args:
        result: of ``verify needle``, as ``--format json`` prints it.
    """
    cells: Sequence[Mapping[str, Any]] = result["cells"]
    lengths = list(dict.fromkeys(cell["length"] for cell in cells))
    depths = list(dict.fromkeys(cell["depth"] for cell in cells))
    width = max(_LEAST_WIDTH, _LEFT + _FIELD_WIDTH * len(lengths) + _RIGHT)
    title = f"Needles found by {result['model']}: {result['hits']} of {len(cells)}"
    lines = textwrap.wrap(title, int((width - 2 * _RIGHT) / _LETTER))
    top = _LINE * (len(lines) + 1)
    bottom = top + _FIELD_HEIGHT * len(depths)
    middle = _LEFT + _FIELD_WIDTH * len(lengths) // 2
    columns = {length: _LEFT + _FIELD_WIDTH * index for index, length in enumerate(lengths)}
    rows = {depth: top + _FIELD_HEIGHT * index for index, depth in enumerate(depths)}
    return render_template(
        "verify/needle.svg.j2",
        {
            "width": width,
            "height": bottom + _BELOW,
            "title": title,
            "description": f"Document {result['document']}; depth of the needle in percent over "
            "the length of the prompt in tokens.",
            "title_lines": [
                {"x": _RIGHT, "y": _LINE * (index + 1), "text": line}
                for index, line in enumerate(lines)
            ],
            "fields": [
                _field(cell, columns[cell["length"]], rows[cell["depth"]]) for cell in cells
            ],
            "depths": [
                {"x": _LEFT - 8, "y": y + _FIELD_HEIGHT // 2 + 5, "text": f"{depth:g} %"}
                for depth, y in rows.items()
            ],
            "lengths": [
                {"x": x + _FIELD_WIDTH // 2, "y": bottom + 20, "text": f"{length:,}"}
                for length, x in columns.items()
            ],
            "x_label": {"x": middle, "y": bottom + 46, "text": "length of the prompt (tokens)"},
            "y_label": {"x": 20, "y": (top + bottom) // 2, "text": "depth"},
        },
    )


def _field(cell: Mapping[str, Any], x: int, y: int) -> dict[str, Any]:
    outcome = cell["outcome"]
    tokens = cell["prompt_tokens"]
    return {
        "x": x,
        "y": y,
        "width": _FIELD_WIDTH,
        "height": _FIELD_HEIGHT,
        "fill": _FILLS[outcome],
        "ink": _INKS[outcome],
        "text_x": x + _FIELD_WIDTH // 2,
        "text_y": y + _FIELD_HEIGHT // 2 + 5,
        "text": outcome,
        "told": f"{outcome} at {cell['length']:,} tokens, depth {cell['depth']:g} %"
        + ("" if tokens is None else f" ({tokens:,} counted by the server)"),
    }
