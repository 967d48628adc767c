"""The terms of a start, predicted and logged, and what their differences say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.api.sizing import SizeReport
from vllm_advisor.units import GIB

_WORTH_SAYING = GIB // 20  # 0.05 GiB; logs round to 0.01
_SPENT = (
    "weights",
    "activations",
    "CUDA graphs, estimate",
    "activations and CUDA graphs",
    "non-torch",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTerm:
    """One term: bytes of the fullest rank, tokens, requests or text, as ``unit`` says.

    ``predicted`` or ``logged`` is ``None`` where there is none; ``note`` says why, or what the
    logged one is made of.
    """

    term: str
    unit: str
    predicted: float | str | None
    logged: float | str | None
    line: int | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Predicted less logged."""
        if isinstance(self.predicted, int | float) and isinstance(self.logged, int | float):
            return self.predicted - self.logged
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; ``difference_percent`` is of the logged figure."""
        difference = self.difference
        share = None
        if difference is not None and isinstance(self.logged, int | float) and self.logged:
            share = round(100 * difference / abs(self.logged), 2)
        return {
            "term": self.term,
            "unit": self.unit,
            "predicted": self.predicted,
            "logged": self.logged,
            "difference": difference,
            "difference_percent": share,
            "line": self.line,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The terms, and the report they are from (``None`` where the GPU is not known).

    ``why_not`` says why there is no prediction of the memory, and ``fix`` how to get one.
    """

    terms: tuple[ComparedTerm, ...] = ()
    prediction: SizeReport | None = None
    why_not: str = ""
    fix: str = ""

    @property
    def summary(self) -> str:
        """What the KV cache is off by, and the terms that make up for most of it."""
        off = {t.term: t.difference for t in self.terms if t.unit == "bytes" and t.difference}
        cache = off.pop("KV cache", 0.0)
        if abs(cache) < _WORTH_SAYING:
            return ""
        size = "smaller" if cache > 0 else "larger"
        # A cache that is smaller than predicted: something took more than predicted.
        terms = [
            f"{term} {'more' if less < 0 else 'less'} by {abs(less) / GIB:.2f} GiB"
            for term, less in sorted(off.items(), key=lambda item: -abs(item[1]))
            if term in _SPENT and less * cache < 0 and abs(less) >= _WORTH_SAYING
        ]
        said = f"the KV cache is {abs(cache) / GIB:.2f} GiB {size} than predicted"
        return f"{said}: {', '.join(terms)}" if terms else said
