"""``# vllm-advisor: ignore=KV001 reason="..."`` comments of a file under check.

A comment speaks for the line it ends, or, on a line of its own, for the next line that is no
comment; a command that goes on over several lines with backslashes is one line in this.
``ignore-file=`` among the comments at the top speaks for the whole file. Comments begin with ``#``
(shell, YAML, Dockerfile, systemd) or, on a line of their own, with ``;`` (systemd).
"""

from __future__ import annotations

import re

from vllm_advisor.types.decision import Location
from vllm_advisor.types.suppression import Suppression

_MARK = re.compile(r"(?:^\s*(?P<own>[#;]+)|\s#+)\s*vllm-advisor:\s*(?P<rest>.*)")
_COMMENT = re.compile(r"\s*[#;]")
_WORDS = re.compile(
    r"(?P<kind>ignore(?:-file)?)\s*=\s*(?P<names>[\w-]+(?:\s*,\s*[\w-]+)*)"
    r"(?:\s+reason\s*=\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'))?\s*(?:#.*)?"
)
_UNREADABLE = 'it cannot be read; write # vllm-advisor: ignore=KV001 reason="why it may stay"'
_NOT_AT_TOP = "ignore-file= counts only among the comments at the top of the file"
_NO_LINE = "no line comes after it"


def read_suppressions(text: str, file: str) -> tuple[Suppression, ...]:
    """Every such comment of a text, in order; one that counts for nothing has a ``problem``.

    Args:
        text: the text under check.
        file: its name in locations.
    """
    if "vllm-advisor:" not in text:
        return ()
    lines = text.split("\n")
    top = next((i for i, line in enumerate(lines) if not _is_top(line)), len(lines))
    found = []
    for index, line in enumerate(lines):
        if mark := _MARK.search(line):
            column = mark.start() + len(mark[0]) - len(mark[0].lstrip()) + 1
            place = Location(file=file, line=index + 1, column=column)
            found.append(_suppression(mark, place, lines, at_top=index < top))
    return tuple(found)


def _suppression(
    mark: re.Match[str], place: Location, lines: list[str], *, at_top: bool
) -> Suppression:
    first, last = _lines_meant(lines, place.line - 1, own_line=mark["own"] is not None)
    words = _WORDS.fullmatch(mark["rest"].rstrip())
    if words is None:
        return Suppression(
            names=(), reason="", location=place, first_line=first, last_line=last,
            problem=_UNREADABLE,
        )  # fmt: skip
    for_file = words["kind"] == "ignore-file"
    problem = ""
    if for_file and not at_top:
        problem = _NOT_AT_TOP
    elif not for_file and first > len(lines):
        problem = _NO_LINE
    return Suppression(
        names=tuple(name.strip() for name in words["names"].split(",")),
        reason=(words["double"] or words["single"] or "").strip(),
        location=place,
        first_line=1 if for_file and at_top else first,
        last_line=None if for_file and at_top else last,
        problem=problem,
    )


def _is_top(line: str) -> bool:
    return not line.strip() or line.rstrip() == "---" or _COMMENT.match(line) is not None


def _lines_meant(lines: list[str], index: int, *, own_line: bool) -> tuple[int, int]:
    """First and last line, from 1, of what a comment speaks for; beyond the text if nothing."""
    first = index
    if own_line:
        while first < len(lines) and _COMMENT.match(lines[first]):
            first += 1
        if first == len(lines) or not lines[first].strip():
            return len(lines) + 1, len(lines) + 1
    last = first
    while last + 1 < len(lines) and _goes_on(lines[last]):
        last += 1
    while not own_line and first > 0 and _goes_on(lines[first - 1]):
        first -= 1
    return first + 1, last + 1


def _goes_on(line: str) -> bool:
    return line.rstrip("\r").endswith("\\") and _COMMENT.match(line) is None
