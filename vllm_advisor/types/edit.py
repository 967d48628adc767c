"""A change of a text that a machine can make."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    r"""Replace ``old``, which begins at a place in a file, by ``new``.

    ``line`` and ``column`` count from 1, in characters; lines end in ``\n``. The range that is
    replaced ends where ``old`` ends: an edit whose ``old`` does not stand at its place is never
    made, so a place that is not exact does no harm. ``old`` is empty where text is inserted.
    ``safe`` says that the meaning is certain: only such edits are made without being asked for
    one by one.
    """

    file: str
    line: int
    column: int
    old: str
    new: str
    safe: bool = True

    @property
    def end(self) -> tuple[int, int]:
        """Line and column after the last character of ``old``."""
        breaks = self.old.count("\n")
        if not breaks:
            return self.line, self.column + len(self.old)
        return self.line + breaks, len(self.old) - self.old.rfind("\n")
