"""Safe fixes of a report: shown as a diff, or written, all or none."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from vllm_advisor.api.check_report import CheckReport
from vllm_advisor.api.check_sources import COMMAND_LINE, TEXT
from vllm_advisor.api.writing import Rewrite, rewrite_files
from vllm_advisor.errors import InputError
from vllm_advisor.parse.text_edits import apply_edits, overlap
from vllm_advisor.types.edit import Edit

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """The files as they would be after the safe fixes, and how many findings these settle."""

    files: tuple[Rewrite, ...]
    count: int

    def diff(self) -> str:
        """A unified diff that ``patch -p1`` takes; empty if there is nothing to fix."""
        return "".join(part for file in self.files for part in _diff(file))

    def write(self) -> None:
        """Write every file, or none; their modes stay.

        Raises:
            InputError: what was checked is no file.
            OutputError: a file cannot be written, or has changed since it was checked.
        """
        for file in self.files:
            if file.path in ("-", TEXT, COMMAND_LINE):
                raise InputError(
                    "there is no file to write the fixes to",
                    where=file.path,
                    fix="--diff shows them; name a file to have it changed",
                )
        rewrite_files(self.files)


def fixes_of(report: CheckReport) -> Fixes:
    """The safe fixes of the findings that count.

    A finding is fixed with all of its edits or not at all; where two findings change the same
    place, the first one is fixed, and the other is left for the next check.
    """
    taken: dict[str, list[Edit]] = {}
    count = 0
    for finding in report.findings:
        if not finding.edits or not all(edit.safe for edit in finding.edits):
            continue
        wanted = {edit.file: list(taken.get(edit.file, ())) for edit in finding.edits}
        for edit in finding.edits:
            wanted[edit.file].append(edit)
        if not any(overlap(report.texts[file], edits) for file, edits in wanted.items()):
            taken |= wanted
            count += 1
    texts = report.texts
    files = tuple(
        Rewrite(path=file, before=texts[file], after=apply_edits(texts[file], edits))
        for file, edits in taken.items()
    )
    return Fixes(files=files, count=count)


def _diff(file: Rewrite) -> list[str]:
    name = file.path
    if not name.isprintable():
        name = name.encode("unicode_escape").decode("ascii")
    absolute = Path(file.path).is_absolute()
    lines = difflib.unified_diff(
        _LINE.findall(file.before),
        _LINE.findall(file.after),
        name if absolute else f"a/{name}",
        name if absolute else f"b/{name}",
    )
    mark = "\n\\ No newline at end of file\n"
    return [line if line.endswith("\n") else line + mark for line in lines]
