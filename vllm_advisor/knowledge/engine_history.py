"""When flags, variables and quantization methods came and went, over all recorded releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from vllm_advisor import resources
from vllm_advisor.knowledge.engine_tables import (
    known_versions,
    nearest,
    parse_version,
    recorded_flags,
    recorded_table,
)
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.engine_history import (
    NameHistory,
    QuantizationFacts,
    QuantizationMethod,
    Replacement,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Advice:
    names: tuple[str, ...]
    why: str = ""
    write: tuple[Replacement, ...]
    renamed_to: str | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plugin:
    method: str
    plugin: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    flags: tuple[_Advice, ...]
    variables: tuple[_Advice, ...]
    quantization_plugins: tuple[_Plugin, ...]


@cache
def flag_history(spelling: str) -> NameHistory:
    """The history of an option string such as ``--swap-space``."""
    return _history(spelling, _spellings(), _advice().flags)


@cache
def environment_history(name: str) -> NameHistory:
    """The history of a variable of ``vllm/envs.py`` such as ``VLLM_USE_V1``."""
    return _history(name, _variables(), _advice().variables)


def knows_variable(engine: EngineFacts, name: str) -> bool:
    """Whether the version's ``vllm/envs.py`` has a variable."""
    return name in _variables()[engine.version_used or engine.version]


def warns_of_variables(engine: EngineFacts) -> bool:
    """Whether the version warns of ``VLLM_*`` variables that it does not know.

    It came together with the flag that makes an error of it.
    """
    return engine.flag("--fail-on-environ-validation") is not None


def quantization_facts(version: str) -> QuantizationFacts:
    """Methods of a version, and those that have become plugins.

    Raises:
        InputError: the text is no version.
        UnknownFactError: the version is older than all that are recorded.
    """
    used = nearest(parse_version(version))
    table, _ = recorded_table("quantization", used)
    plugins = {p.method: p.plugin for p in _advice().quantization_plugins}
    return QuantizationFacts(
        version=used,
        methods={
            name: QuantizationMethod(name=name, min_capability=entry.get("capability"))
            for name, entry in table.items()
        },
        plugins={name: plugin for name, plugin in plugins.items() if name not in table},
    )


def replacement(history: NameHistory, engine: EngineFacts) -> str | None:
    """What to write instead in a version, ``None`` where nothing is known."""
    for option in history.write:
        if option.needs is not None and not _has_flag(engine, option.needs):
            continue
        if option.needs_variable is None or knows_variable(engine, option.needs_variable):
            return option.text
    return None


def _has_flag(engine: EngineFacts, needs: str) -> bool:
    name, _, key = needs.partition(".")
    flag = engine.flag(name)
    return flag is not None and (not key or not flag.choices or key in flag.choices)


def _history(
    name: str, names: Mapping[str, frozenset[str]], advice: tuple[_Advice, ...]
) -> NameHistory:
    spans: list[tuple[str, str]] = []
    after: list[str | None] = []
    has_it = False
    for version in known_versions():
        if name in names[version]:
            if has_it:
                spans[-1] = (spans[-1][0], version)
            else:
                spans.append((version, version))
                after.append(None)
        elif has_it:
            after[-1] = version
        has_it = name in names[version]
    found = next((a for a in advice if name in a.names), None)
    return NameHistory(
        name=name,
        spans=tuple(spans),
        after=tuple(after),
        renamed_to=found.renamed_to if found else None,
        advice=found.why if found else "",
        write=found.write if found else (),
    )


@cache
def _spellings() -> dict[str, frozenset[str]]:
    """Every option string of every release."""
    return {
        version: frozenset(
            spelling
            for flag in recorded_flags(version)[0]
            for spelling in (*flag.get("spellings", ()), *flag.get("negations", ()))
        )
        for version in known_versions()
    }


@cache
def _variables() -> dict[str, frozenset[str]]:
    return {v: frozenset(recorded_table("environment", v)[0]) for v in known_versions()}


@cache
def _advice() -> _File:
    return read_profile(resources.profiles("engines") / "advice.yaml", _File)
