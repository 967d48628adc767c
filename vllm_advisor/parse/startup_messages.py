"""What terminals, containers and vLLM's own logger put around the message of a line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_BEFORE = re.compile(
    r"\s*(?:"
    r"\[pod/[^\]\s]+\]"  # kubectl logs --prefix
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:?\d\d)"  # docker --timestamps
    r"(?: std(?:out|err) [FP])?"  # a container runtime's own files
    r"|[\w.-]+ +\|(?= )"  # docker compose
    r"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]:"  # journalctl
    r")\s?"
)
_PROCESS = re.compile(r"\s*\(([A-Za-z][\w-]*)(?: rank=\d+)? pid=\d+(?:, ip=[\w.:]+)?\)")
_LEVEL = re.compile(
    r"\s*(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[^\]\s]*\]\s?"
)
_MOST_BEFORE = 4  # prefixes of one line


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line without colours and prefixes: who printed it, at which level, and the text.

    ``indented`` lines belong to the message before them: a traceback, a list.
    """

    process: str
    level: str
    text: str
    indented: bool = False


def clean_line(raw: str) -> LogLine:
    """Take off what terminals, containers and vLLM's own logger put around a message.

    Args:
        raw: the line as it stands in the file; of several parts that a carriage return separates
            (progress bars) the whole is kept.
    """
    text = _unwrapped(raw)
    if "\x1b" in text:
        text = without_escapes(text)
    process = ""
    for _ in range(_MOST_BEFORE):
        if (before := _BEFORE.match(text)) is not None:
            text = text[before.end() :]
        elif (named := _PROCESS.match(text)) is not None:
            process = named[1]
            text = text[named.end() :]
        else:
            break
    level = _LEVEL.match(text)
    if level is None:
        return LogLine(process=process, level="", text=text.strip())
    message = text[level.end() :]
    return LogLine(
        process=process,
        level=level[1],
        text=message.strip(),
        indented=message.startswith((" ", "\t")),
    )


def without_escapes(text: str) -> str:
    """A text without the codes that colour it."""
    return _ESCAPES.sub("", text)


def _unwrapped(raw: str) -> str:
    """The text of a line that Docker's json-file driver wrote; any other as it is."""
    if not raw.startswith('{"log":'):
        return raw
    try:
        return str(json.loads(raw)["log"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return raw
