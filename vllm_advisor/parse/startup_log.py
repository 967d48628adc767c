"""A start-up log of vLLM -> the facts it states, with their lines.

Reads what people have: plain, ``docker logs --timestamps``, ``kubectl logs --prefix``, Docker's
JSON lines, with colours, and with the lines of several processes mixed. A line that says nothing
known is passed over; none can make the reading fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from vllm_advisor.errors import InputError
from vllm_advisor.parse.startup_arguments import LoggedArguments, read_arguments
from vllm_advisor.parse.startup_lines import EXACT, FACT_LINES, read_number
from vllm_advisor.parse.startup_messages import LogLine, clean_line
from vllm_advisor.parse.startup_refusals import ERROR, REFUSALS, WRAPPERS
from vllm_advisor.parse.startup_words import may_say
from vllm_advisor.types.startup import LogFact, LogMessage, LogRefusal, StartupLog

_LONGEST = 20_000  # characters of a line that are searched for facts; arguments may be longer
_MOST = 200  # different warnings, and facts of one kind: ranks of the largest deployments
_MESSAGE = 500  # characters of a warning or an error that are kept
_ACCESS = "INFO: "  # of uvicorn; a log goes on with every request
_BEGINS = frozenset({"version"})
_LATER = frozenset({"weights", "kv_cache", "kv_tokens", "started", "engine_version"})
_FIX = (
    "give what vLLM printed from its first line on (docker logs NAME, kubectl logs POD, journalctl)"
)


@dataclass(slots=True)
class _Start:
    """What was read of one start."""

    line: int = 1
    facts: list[LogFact] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    arguments: LoggedArguments | None = None
    arguments_line: int | None = None
    warnings: dict[str, LogMessage] = field(default_factory=dict)
    refusals: dict[str, LogRefusal] = field(default_factory=dict)
    errors: dict[str, LogRefusal] = field(default_factory=dict)

    @property
    def said(self) -> bool:
        return bool(self.facts or self.arguments or self.refusals)

    @property
    def under_way(self) -> bool:
        return bool(self.refusals) or not _LATER.isdisjoint(self.counts)


def read_startup_log(lines: Iterable[str], name: str) -> StartupLog:
    """Read a log; of several starts the last.

    Args:
        lines: the lines, in their order.
        name: of the file, for errors.

    Raises:
        InputError: nothing in it is a line of vLLM that is known.
    """
    start, starts, number = _Start(), 1, 0
    for number, raw in enumerate(lines, 1):
        if not may_say(raw):
            continue
        line = clean_line(raw.rstrip("\r\n"))
        facts = _facts(line, number)
        # One start can print its version in several processes; a restart comes after more.
        if start.under_way and any(fact.id in _BEGINS for fact in facts):
            start, starts = _Start(line=number), starts + 1
        _take(start, line, number, facts)
    if not start.said:
        raise InputError("no line of a vLLM start-up is in it", where=name, fix=_FIX)
    refusals = start.refusals or ({} if "started" in start.counts else start.errors)
    given = start.arguments
    return StartupLog(
        facts=tuple(start.facts),
        arguments=dict(given.values) if given else {},
        arguments_from=given.kind if given else "",
        arguments_line=start.arguments_line,
        unread=given.unread if given else (),
        warnings=tuple(start.warnings.values()),
        refusals=tuple(refusals.values()),
        lines=number,
        first_line=start.line,
        starts=starts,
    )


def _take(start: _Start, line: LogLine, number: int, facts: list[LogFact]) -> None:
    for fact in facts:
        count = start.counts.get(fact.id, 0)
        start.counts[fact.id] = count + 1
        if count < _MOST:
            start.facts.append(fact)
    better = start.arguments is None or start.arguments.kind == "config"
    if better and (given := read_arguments(line.text)) is not None:
        if start.arguments is None or given.kind != "config":
            start.arguments, start.arguments_line = given, number
        return
    if _refused(start, line, number):
        return
    if line.level == "WARNING" and not _traceback(line):
        _count(start.warnings, line.text[:_MESSAGE], number)


def _traceback(line: LogLine) -> bool:
    """A line of the traceback that a warning brings with it."""
    return (
        line.indented
        or not line.text
        or line.text.startswith("Traceback (most recent call last)")
        or ERROR.match(line.text) is not None
    )


def _facts(line: LogLine, number: int) -> list[LogFact]:
    text = line.text[:_LONGEST]
    found: list[LogFact] = []
    for form in FACT_LINES:
        if form.hint not in text:
            continue
        for match in form.pattern.finditer(text):  # mixed processes may share a line
            for (fact_id, unit), group in zip(form.facts, match.groups(), strict=True):
                shown = "bytes" if unit == EXACT else unit
                try:
                    value = read_number(group, unit)
                except (ValueError, OverflowError):
                    continue
                found.append(
                    LogFact(id=fact_id, value=value, unit=shown, line=number, process=line.process)
                )
    return found


def _refused(start: _Start, line: LogLine, number: int) -> bool:
    """Whether the line says why vLLM does not start; a traceback says it once per process."""
    text = line.text[:_LONGEST]
    if line.level in ("INFO", "WARNING", "DEBUG") or text.startswith(_ACCESS):
        return False
    for kind, pattern in REFUSALS:
        match = pattern.search(text)
        if match is None:
            continue
        figures = {k: v.strip() for k, v in match.groupdict().items() if v is not None}
        _refusal(start.refusals, kind, match.string[match.start() :], number, figures)
        return True
    error = ERROR.search(text)
    if error is None:
        return False
    said = error[0].strip()
    if not any(word in said for word in WRAPPERS):
        _refusal(start.errors, "other", said, number, {})
    return True


def _refusal(
    into: dict[str, LogRefusal], kind: str, text: str, number: int, figures: dict[str, str]
) -> None:
    key = kind if kind != "other" else text[:_MESSAGE]
    known = into.get(key)
    if known is not None:
        into[key] = replace(known, count=known.count + 1)
    elif len(into) < _MOST:
        into[key] = LogRefusal(kind=kind, text=text[:_MESSAGE], line=number, figures=figures)


def _count(into: dict[str, LogMessage], text: str, number: int) -> None:
    known = into.get(text)
    if known is not None:
        into[text] = replace(known, count=known.count + 1)
    elif len(into) < _MOST:
        into[text] = LogMessage(text=text, line=number)
