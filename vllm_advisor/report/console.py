"""The only module that makes rich consoles: how text reaches a terminal, a pipe or a file.

Piped output has no colours and no borders, and nothing is ever cut off: long text folds, commands
stay whole. What a person wrote is printed as it is, never read as markup or escape codes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from vllm_advisor.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH = 100
Part = str | tuple[str, str]  # text, or text and its style
Cell = str | tuple[Part, ...]  # one line, or a line for each part


class Page:
    """Prints to one stream. ``width`` is the terminal's, ``COLUMNS``, or 100 in a pipe.

    rich itself honours ``NO_COLOR``.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        # An ASCII-only stream gets escapes instead of a crash.
        target = sys.stdout if stream is None else stream
        if isinstance(target, io.TextIOWrapper):
            target.reconfigure(errors="backslashreplace")
        self._console = _console(target)
        self.width = self._console.width

    @property
    def is_terminal(self) -> bool:
        """Whether a person is looking at the stream."""
        return self._console.is_terminal

    def text(self, *parts: Part, indent: int = 0, bullet: str = "") -> None:
        """Print text that folds between words; lines after the first hang under the first word."""
        hang = indent + len(bullet)
        lines = self._text(parts).wrap(
            self._console, max(20, self.width - hang), overflow="fold", tab_size=1
        )
        for number, line in enumerate(lines or [self._text(("",))]):
            line.rstrip()
            before = " " * indent + bullet if number == 0 else " " * hang
            self._line(self._text((before,)).append_text(line))

    def verbatim(self, *parts: Part) -> None:
        """Print one line that must not be broken: a command, a log line, a bar."""
        self._line(self._text(parts))

    def blank(self) -> None:
        """Print an empty line."""
        self._line(self._text(("",)))

    def heading(self, title: str) -> None:
        """Print an empty line and a title."""
        self.blank()
        self.verbatim((title, "bold"))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        *,
        right: Iterable[int] = (),
        indent: int = 2,
    ) -> None:
        """Print a table whose cells fold; ``right`` holds the indices of right-aligned columns."""
        from rich import box  # noqa: PLC0415 - loaded only when a table is drawn
        from rich.table import Table  # noqa: PLC0415

        aligned = set(right)
        table = Table(
            box=box.SIMPLE_HEAD if self.is_terminal else None,
            padding=(0, 2, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        for index, column in enumerate(columns):
            table.add_column(
                self._text((column,)),
                justify="right" if index in aligned else "left",
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(self._cell(cell) for cell in row))
        options = self._console.options.update_width(max(20, self.width - indent))
        for line in self._console.render_lines(table, options, pad=False):
            shown = self._text((" " * indent,))
            for segment in line:
                shown.append(segment.text, segment.style)
            shown.rstrip()
            self._line(shown)

    def _cell(self, cell: Cell) -> Text:
        lines = (cell,) if isinstance(cell, str) else cell
        return self._text(("",)).append("\n").join([self._text((line,)) for line in lines])

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)

    def _text(self, parts: Iterable[Part]) -> Text:
        from rich.text import Text  # noqa: PLC0415

        made = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            made.append(visible(words), style or None)
        return made


def _console(stream: TextIO) -> Console:
    from rich.console import Console  # noqa: PLC0415 - --help and JSON never load rich

    return Console(
        file=stream,
        width=None if stream.isatty() else _piped_width(),
        markup=False,
        emoji=False,
        highlight=False,
    )


def _piped_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return max(40, int(columns)) if columns.isdecimal() else WIDTH
