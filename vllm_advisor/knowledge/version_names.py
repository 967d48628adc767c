"""Names that come and go with vLLM's versions: environment variables, parsers, and replacements.

Recorded from the sources of releases under ``profiles/checks/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from packaging.version import Version

from vllm_advisor import resources
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.profile_file import read_profile

ParserKind = Literal["tool", "reasoning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A name, the release it came with and the last that has it (``None``: the newest one has)."""

    name: str
    since: str
    until: str | None = None

    def holds(self, version: str) -> bool:
        """Whether the release has the name; one between two recorded ones is like the older."""
        asked = Version(version)
        return Version(self.since) <= asked and (self.until is None or asked <= Version(self.until))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What to write instead of a name; ``{value}`` stands for the value that was given."""

    name: str
    instead: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DebuggingVariable:
    """A variable for finding faults, the values that switch it on and what it costs."""

    name: str
    values: tuple[str, ...]
    cost: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variables:
    source: str
    oldest: str
    variables: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserFamily:
    """A tool parser whose format needs special tokens: prefixes of the model classes with them."""

    parser: str
    architectures: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsers:
    source: str
    oldest: str
    tool: tuple[Span, ...]
    reasoning: tuple[Span, ...]
    families: tuple[ParserFamily, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacements:
    variables: tuple[Replacement, ...]
    debugging: tuple[DebuggingVariable, ...]


def variable_spans(name: str) -> tuple[Span, ...]:
    """The releases that have an environment variable; empty when none ever had."""
    return tuple(span for span in _variables().variables if span.name == name)


@cache
def variable_names(version: str) -> tuple[str, ...]:
    """Every ``VLLM_`` variable of a release.

    Raises:
        UnknownFactError: the release is older than the record.
    """
    _not_before(version, _variables().oldest, "environment variables")
    return tuple(span.name for span in _variables().variables if span.holds(version))


@cache
def parser_names(kind: ParserKind, version: str) -> tuple[str, ...]:
    """Names that ``--tool-call-parser`` or ``--reasoning-parser`` takes in a release.

    Raises:
        UnknownFactError: the release is older than the record.
    """
    table = _parsers()
    _not_before(version, table.oldest, f"{kind} parsers")
    spans = table.tool if kind == "tool" else table.reasoning
    return tuple(span.name for span in spans if span.holds(version))


def parser_spans(kind: ParserKind, name: str) -> tuple[Span, ...]:
    """The releases that have a parser; empty when none ever had."""
    spans = _parsers().tool if kind == "tool" else _parsers().reasoning
    return tuple(span for span in spans if span.name == name)


def parser_family(parser: str) -> ParserFamily | None:
    """The models that a tool parser is for, where no other model can write its format."""
    return next((f for f in _parsers().families if f.parser == parser), None)


def variable_replacement(name: str, value: str) -> str | None:
    """What to write instead of a variable that vLLM no longer has, where that is recorded."""
    found = next((r.instead for r in _replacements().variables if r.name == name), None)
    return found.replace("{value}", value) if found is not None else None


def debugging_variables() -> tuple[DebuggingVariable, ...]:
    """Variables that belong to a search for faults."""
    return _replacements().debugging


def _not_before(version: str, oldest: str, what: str) -> None:
    if Version(version) < Version(oldest):
        raise UnknownFactError(f"the {what} of vLLM {version} are not recorded, before {oldest}")


@cache
def _variables() -> _Variables:
    return read_profile(resources.profiles("checks") / "variables.yaml", _Variables)


@cache
def _parsers() -> _Parsers:
    return read_profile(resources.profiles("checks") / "parsers.yaml", _Parsers)


@cache
def _replacements() -> _Replacements:
    return read_profile(resources.profiles("checks") / "replacements.yaml", _Replacements)
