"""Insertions into YAML text that keep its layout: where a key stands, and what comes beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEFORE_KEY = re.compile(r" *(?:- +)*")  # of a block mapping, or the first key of a list's item


def key_indentation(text: str, location: Location) -> int | None:
    """Blanks before the keys of the block mapping whose key stands at a place.

    Args:
        text: the YAML text, of one or several documents.
        location: the key's place, as the marks of a YAML reader give it.

    Returns:
        The number of blanks, or ``None`` where the key stands in a ``{...}``, behind a tab, or
        beyond the text.
    """
    lines = text.split("\n")
    if not 0 < location.line <= len(lines) or location.column > len(lines[location.line - 1]):
        return None
    before = lines[location.line - 1][: location.column - 1]
    return len(before) if _BEFORE_KEY.fullmatch(before) else None


def insert_after_line(text: str, file: str, line: int, lines: Sequence[str], indent: int) -> Edit:
    r"""An edit that puts lines after a line, with the line ends that the text has.

    Args:
        text: the text under check.
        file: its name.
        line: the line before, from 1; it has to be there.
        lines: what to insert, without line ends; their own indentation is kept.
        indent: blanks in front of each.

    Raises:
        ValueError: the text has no such line.
    """
    there = text.split("\n")
    if not 0 < line <= len(there):
        raise ValueError(f"there is no line {line}")
    end = "\r\n" if there[0].endswith("\r") else "\n"
    body = there[line - 1].removesuffix("\r")
    new = "".join(f"{end}{' ' * indent}{one}" for one in lines)
    return Edit(file=file, line=line, column=len(body) + 1, old="", new=new)


def insert_beside_key(text: str, location: Location, lines: Sequence[str]) -> Edit | None:
    """An edit that adds keys to the mapping of a key, after the whole value of that key.

    Args:
        text: the YAML text, of one or several documents.
        location: the key's place.
        lines: the new keys with their values, such as ``("shm_size: 16gb",)``.

    Returns:
        The edit, or ``None`` where it would not be certain: the text is no YAML (a template), the
        key is none of a block mapping, or its value ends in an alias.
    """
    indent = key_indentation(text, location)
    if indent is None:
        return None
    try:
        pairs = [pair for root in yaml.compose_all(text, Loader=_LOADER) for pair in _pairs(root)]
    except yaml.YAMLError:
        return None
    here = (location.line - 1, location.column - 1)
    for key, value in pairs:
        if (key.start_mark.line, key.start_mark.column) == here:
            last = _last_line(value, key.start_mark.index, text.split("\n"))
            if last is None:
                return None
            return insert_after_line(text, location.file, last + 1, lines, indent)
    return None


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of block mappings below a node, each once, with its value."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        for key, value in node.value:
            if not node.flow_style:
                yield key, value
            waiting.append(value)


def _last_line(node: Any, start: int, lines: list[str]) -> int | None:
    """Line, from 0, on which a value ends; ``None`` if it is written elsewhere (an alias)."""
    if node.start_mark.index < start:
        return None
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last, start, lines)
    line: int = node.end_mark.line
    if node.end_mark.column == 0 and line > node.start_mark.line:  # a block text ends before it
        line -= 1
        while line > node.start_mark.line and not lines[line].strip():
            line -= 1
    return line
