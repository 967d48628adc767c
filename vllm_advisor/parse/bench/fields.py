"""Fields of a result file: numbers that mean something, or an error with the place of the key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vllm_advisor.errors import InputError

LARGEST = {
    "tokens": 10_485_760.0,  # of one request: the longest context that vLLM serves
    "total": 1e13,  # tokens or requests of a run
    "ms": 1e8,  # a day
    "rate": 1e7,  # requests or tokens per second
    "concurrency": 1e6,
}
_FIX = "measure again, or leave this file out"


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of a file with the place it stands at: ``results.json: benchmarks[0].metrics``."""

    file: str
    data: Mapping[str, Any]
    path: str = ""

    def where(self, key: str) -> str:
        """The place of a key, for a person."""
        return f"{self.file}: {self.path}.{key}" if self.path else f"{self.file}: {key}"

    def has(self, key: str) -> bool:
        """Whether there is a value."""
        return self.data.get(key) is not None

    def inside(self, key: str) -> Fields:
        """The mapping of a key; an empty one where there is none.

        Raises:
            InputError: the value is something else.
        """
        value = self.data.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(key, f"{_shown(value)} is no object")
        return Fields(self.file, value or {}, f"{self.path}.{key}" if self.path else key)

    def text(self, key: str) -> str | None:
        """Text, or ``None`` where there is none."""
        value = self.data.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str, kind: str) -> float | None:
        """A number above zero; ``None`` where there is none.

        Args:
            key: the key.
            kind: what it counts, of :data:`LARGEST`.

        Raises:
            InputError: it is no number, not above zero, or larger than anything that is measured.
        """
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"{_shown(value)} is no number")
        if not isinstance(value, int) and not math.isfinite(value):
            raise self.wrong(key, f"{value} is no measured value")
        if value <= 0:
            raise self.wrong(key, f"{_shown(value)} is not above zero")
        if value > LARGEST[kind]:
            raise self.wrong(key, f"{_shown(value)} is more than a server can do")
        return float(value)

    def needed(self, key: str, kind: str) -> float:
        """The same, of a key that has to be there.

        Raises:
            InputError: it is missing, or as in :meth:`number`.
        """
        value = self.number(key, kind)
        if value is None:
            raise self.wrong(key, "it is missing")
        return value

    def wrong(self, key: str, why: str, fix: str = _FIX) -> InputError:
        """An error about a key."""
        return InputError(f"{key}: {why}", where=self.where(key), fix=fix)


def _shown(value: Any) -> str:
    """A value, cut: of a whole number of a thousand digits as well."""
    if isinstance(value, int) and abs(value) > 1e15:
        return "a number of that size"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
