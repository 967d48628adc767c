"""routing.yaml: the policy as applications and routers read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from vllm_advisor.errors import InputError
from vllm_advisor.types.routing import RoutingPolicy

SCHEMA_VERSION = "1"
_MAX_BYTES = 10_000_000
_FIX = "write it again: vllm-advisor plan WORKLOAD --output-dir DIR"


def read_policy(path: str | Path) -> RoutingPolicy:
    """The policy of a ``routing.yaml``.

    Raises:
        InputError: the file cannot be read, or is no routing.yaml of this version.
    """
    where = str(path)
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise InputError(f"the file is larger than {_MAX_BYTES:,} bytes", where=where, fix=_FIX)
        text = raw.decode("utf-8")
    except FileNotFoundError:
        raise InputError("there is no such file", where=where, fix=_FIX) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"the file cannot be read: {reason}", where=where) from None
    return load_policy(text, file=where)


def load_policy(text: str, *, file: str) -> RoutingPolicy:
    """The policy in the text of a ``routing.yaml``.

    Raises:
        InputError: the text is no routing.yaml of this version.
    """
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise InputError(
            f"this is no YAML: {getattr(error, 'problem', None) or error}", where=where, fix=_FIX
        ) from None
    if not isinstance(data, dict) or "routes" not in data:
        raise InputError("this is no routing.yaml: it has no routes", where=file, fix=_FIX)
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"schema_version is {version!r}; this version reads {SCHEMA_VERSION!r}",
            where=file,
            fix=_FIX,
        )
    try:
        return RoutingPolicy.from_dict(data)
    except KeyError as error:
        raise InputError(f"the key {error} is missing", where=file, fix=_FIX) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"this routing.yaml cannot be read: {error}", where=file, fix=_FIX
        ) from None
