"""Which vLLM releases are recorded, and what is recorded of each.

``profiles/engines/<version>.yaml`` are snapshots of a real parser (``tools/snapshot_engine.py``);
``profiles/engines/history/*.yaml`` were read from the sources of the other releases
(``tools/engine_history.py``), with entries for spans of releases. All of them are JSON.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

from vllm_advisor import resources
from vllm_advisor.errors import InputError, UnknownFactError

Table = Literal["environment", "quantization", "connectors"]
FACTS = "facts.yaml"
_HAND_WRITTEN = (FACTS, "advice.yaml")


def known_versions() -> tuple[str, ...]:
    """Releases whose flags are recorded, oldest first."""
    return _known()


def parse_version(text: str) -> Version:
    """Public part of a version (``+cpu`` and ``+cu129`` name builds of the same code).

    Raises:
        InputError: the text is no version.
    """
    try:
        return Version(Version(text).public)
    except InvalidVersion as error:
        raise InputError(
            f"{text!r} is no vLLM version",
            where="vllm_version",
            fix=f"write one such as {known_versions()[-1]}",
        ) from error


def nearest(asked: Version) -> str:
    """The recorded release whose facts are used for ``asked``.

    The newest that is not newer, or the oldest of the same minor version.

    Raises:
        UnknownFactError: the version is older than all that are recorded.
    """
    known = known_versions()
    same_minor = [k for k in known if Version(k).release[:2] == asked.release[:2]]
    not_newer = [k for k in known if Version(k) <= asked]
    if not_newer and (not same_minor or not_newer[-1] in same_minor):
        return not_newer[-1]
    if same_minor:
        return same_minor[0]
    raise UnknownFactError(
        f"vLLM {asked} is older than what is recorded",
        where="vllm_version",
        fix=f"recorded are {known[0]} to {known[-1]}",
    )


def recorded_flags(version: str) -> tuple[list[dict[str, Any]], str]:
    """The flags of a recorded release as plain data, and where they were read."""
    if version in _snapshots():
        path = resources.profiles("engines") / f"{version}.yaml"
        recorded = json.loads(path.read_text("utf-8"))
        return recorded["flags"], recorded["source"]
    history = _history("flags")
    return _at(history, version, "dest"), history["sources"][version]


def recorded_text(version: str) -> str:
    """The flags of a recorded release as JSON, one per line, with where they were read."""
    if version in _snapshots():
        return (resources.profiles("engines") / f"{version}.yaml").read_text("utf-8")
    flags, source = recorded_flags(version)
    rows = ",\n".join(f"    {json.dumps(flag)}" for flag in flags)
    head = f'  "version": {json.dumps(version)},\n  "source": {json.dumps(source)},\n'
    return f'{{\n{head}  "flags": [\n{rows}\n  ]\n}}\n'


def recorded_table(name: Table, version: str) -> tuple[dict[str, dict[str, Any]], str]:
    """A table of the history at a release, and the release it was read in.

    That is the release itself, or the newest one before it that was read.
    """
    history = _history(name)
    versions = history["versions"]
    earlier = [v for v in versions if Version(v) <= Version(version)]
    used = earlier[-1] if earlier else versions[0]
    return {entry.pop("name"): entry for entry in _at(history, used, "name")}, used


def _at(history: dict[str, Any], version: str, key: str) -> list[dict[str, Any]]:
    """Entries that hold at a release, without their spans; ``key`` is what names them."""
    order = {v: i for i, v in enumerate(history["versions"])}
    place, last = order[version], history["versions"][-1]
    return [
        {key: e["name"], **{k: v for k, v in e.items() if k not in ("name", "since", "until")}}
        for e in history["entries"]
        if order[e["since"]] <= place <= order[e.get("until", last)]
    ]


@cache
def _known() -> tuple[str, ...]:
    return tuple(sorted({*_history("flags")["versions"], *_snapshots()}, key=Version))


@cache
def _history(name: str) -> dict[str, Any]:
    path = resources.profiles("engines") / "history" / f"{name}.yaml"
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


@cache
def _snapshots() -> frozenset[str]:
    files = resources.profiles("engines").glob("*.yaml")
    return frozenset(f.stem for f in files if f.name not in _HAND_WRITTEN)
