"""Environment facts from a workload's section, a file of their own, and ``--set KEY=VALUE``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.environment_file import EnvironmentKeys
from vllm_advisor.knowledge.workload_problems import read_keys
from vllm_advisor.knowledge.yaml_marks import MAX_CHARACTERS, load_marked
from vllm_advisor.types.environment import Environment


def make_environment(given: Mapping[str, Any]) -> Environment:
    """Keys that are already read as the type that everything else works with.

    Raises:
        InputError: a key needs another one that is not there.
    """
    made = Environment(**{key: _frozen(value) for key, value in given.items()})
    for key in ("ingress_class_name", "ingress_tls_secret"):
        if getattr(made, key) is not None and made.ingress_host is None:
            raise InputError(
                f"{key} is given, but there is no ingress_host",
                where="environment",
                fix=f"add ingress_host, or remove {key}",
            )
    return made


def _frozen(value: Any) -> Any:
    """Lists as tuples, those inside a mapping too."""
    if isinstance(value, Mapping):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def environment_keys(keys: EnvironmentKeys | None) -> dict[str, Any]:
    """The keys that a section or file really has, ``null`` included."""
    return keys.model_dump(exclude_unset=True) if keys is not None else {}


def read_environment_file(path: str | Path) -> dict[str, Any]:
    """Keys of a file whose top level is an environment.

    Raises:
        InputError: the file cannot be read, or something in it is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read: {reason}", where=str(path)) from None
    return environment_keys(read_keys(load_marked(text, str(path)), EnvironmentKeys))


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """Keys of ``KEY=VALUE`` words: VALUE is text, or YAML where the key takes something else.

    Raises:
        InputError: a word has no ``=``, or its key or value is not allowed.
    """
    found: dict[str, Any] = {}
    for word in settings:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if not equals or not key.isidentifier() or len(word) > MAX_CHARACTERS:
            raise InputError(
                f"{word[:60]!r} is no KEY=VALUE",
                where="--set",
                fix="--set namespace=llm, or --set 'node_selector={disk: fast}'",
            )
        if not value:
            raise InputError(
                f"--set {key}= says nothing: an empty variable of the shell?",
                where="--set",
                fix=f"--set {key}=null switches it off; leave it out for what it is otherwise",
            )
        found |= _as_text(key, value) or _as_yaml(key, value)
    return found


def _as_text(key: str, value: str) -> dict[str, Any]:
    """The key with its value as text, or nothing where text is not what it takes."""
    if value == "null":
        return {}
    try:
        return environment_keys(EnvironmentKeys.model_validate({key: value}))
    except ValidationError:
        return {}


def _as_yaml(key: str, value: str) -> dict[str, Any]:
    text = f"{key}: {value}" if "\n" not in value else f"{key}: {json.dumps(value)}"
    return environment_keys(read_keys(load_marked(text, f"--set {key}"), EnvironmentKeys))
