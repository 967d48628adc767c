"""Reads one profile file: YAML through libyaml where it was built in, into a frozen dataclass.

Shared by everything bundled under ``profiles/``. A file that breaks its schema is a fault of the
installation, still said as an :class:`~vllm_advisor.errors.InputError` with its path. Keys, types
and allowed values are checked at each reading, by the dataclass's annotations; that figures are
above zero and ids well formed is left to the tests, which read every bundled file. Files that
users write have pydantic models, whose import alone takes longer than all of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from vllm_advisor.errors import InputError

_FIX = "correct the file, or install vllm-advisor again if you have not changed it"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where it exists
RecordT = TypeVar("RecordT")


def profile_names(folder: Path) -> tuple[str, ...]:
    """File names without ``.yaml``, sorted: the ids of all profiles of one kind."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def read_yaml(path: Path, *, before: str | None = None) -> Any:
    """The content of a profile.

    Args:
        path: an existing file.
        before: a top-level key; what stands from there on is not even parsed.

    Raises:
        InputError: the file cannot be read, or is no YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if before is not None:
            text = text.split(f"\n{before}:", 1)[0]
        return yaml.load(text, Loader=_LOADER)  # noqa: S506
    except (OSError, UnicodeDecodeError) as error:
        what = f"the profile cannot be read: {error}"
        raise InputError(what, where=str(path), fix=_FIX) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        what = f"the profile is no YAML: {getattr(error, 'problem', error)}"
        raise InputError(what, where=place, fix=_FIX) from error


def read_profile(path: Path, schema: type[RecordT], *, before: str | None = None) -> RecordT:
    """Read and check one profile.

    Args:
        path: an existing file.
        schema: the dataclass of this kind of profile, or of its first keys.
        before: a top-level key; what stands from there on is not even parsed.

    Raises:
        InputError: the file cannot be read, is no YAML, or breaks the schema.
    """
    return record(schema, read_yaml(path, before=before), path)


def record(schema: type[RecordT], content: Any, path: Path) -> RecordT:
    """A dataclass of what YAML holds: its keys, all of them and no others.

    Raises:
        InputError: a key is unknown or missing, or a value is not what the annotation says.
    """
    try:
        built: RecordT = _value(schema, content, "")
    except ValueError as error:
        raise InputError(f"the profile is wrong{error}", where=str(path), fix=_FIX) from error
    return built


def _value(expected: Any, value: Any, key: str) -> Any:
    """``value`` as the annotation says, lists as tuples."""
    if is_dataclass(expected):
        return _dataclass(expected, value, key)
    origin, inner = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return _of_union(inner, value, key)
    if origin is Literal:
        return value if value in inner else _refuse(key, f"{value!r} is none of {inner}")
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else _refuse(key, "a list is expected")
        kinds = [inner[0]] * len(items) if inner[-1] is ... else inner
        if len(kinds) != len(items):
            _refuse(key, f"{len(kinds)} items are expected")
        pairs = zip(kinds, items, strict=True)
        return tuple(_value(kind, item, f"{key}.{i}") for i, (kind, item) in enumerate(pairs))
    if origin is dict:
        if not isinstance(value, Mapping):
            _refuse(key, "keys and values are expected")
        return {k: _value(inner[1], v, f"{key}.{k}") for k, v in value.items()}
    if expected is Any:
        return value
    if isinstance(expected, type) and issubclass(expected, Enum):
        known = {member.value for member in expected}
        return expected(value) if value in known else _refuse(key, f"{value!r} is none of {known}")
    if expected is float and type(value) is int:
        return float(value)
    return value if type(value) is expected else _refuse(key, f"{value!r} is no {expected}")


def _dataclass(schema: Any, content: Any, key: str) -> Any:
    if not isinstance(content, Mapping):
        _refuse(key, "keys and values are expected")
    types, needed = _schema(schema)
    for name in sorted(needed - content.keys()):
        _refuse(f"{key}.{name}", "it is missing")
    for name in content:
        if name not in types:
            _refuse(f"{key}.{name}", "there is no such key")
    given = {name: _value(types[name], item, f"{key}.{name}") for name, item in content.items()}
    try:
        return schema(**given)
    except ValueError as error:
        return _refuse(key, str(error))


def _of_union(kinds: tuple[Any, ...], value: Any, key: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) == 1:
        return _value(rest[0], value, key)
    return value if type(value) in rest else _refuse(key, f"{value!r} is none of {rest}")


@cache
def _schema(schema: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Annotations by field, and the fields without a default."""
    without = (
        f.name for f in fields(schema) if f.default is MISSING and f.default_factory is MISSING
    )
    return get_type_hints(schema), frozenset(without)


def _refuse(key: str, why: str) -> Any:
    raise ValueError(f" at {key.lstrip('.')}: {why}" if key else f": {why}")
