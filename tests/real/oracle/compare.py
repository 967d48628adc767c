"""Two tables' rows: equal, or in which facts they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

INPUT = re.compile(r" ?\[type=")


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line per fact of ``before`` that is another in ``after``; more facts are no difference.

    Refusals are compared by their text, as far as ``before`` has it: older tables cut it short.
    """
    asked = {key: value for key, value in before.items() if key != "vllm"}
    return list(_differences("", asked, after))


def message(error: BaseException) -> str:
    """An error's text without the repetition of its input that pydantic puts at the end."""
    return INPUT.split(f"{type(error).__name__}: {error}")[0]


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            inner = f"{path}.{key}" if path else key
            if key in after:
                yield from _differences(inner, value, after[key])
            else:
                yield f"{inner}: {value} is gone"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{number}]", old, new)
    elif path.endswith("error") and after.startswith(INPUT.split(before)[0]):
        return
    elif before != after:
        yield f"{path}: {before} -> {after}"
