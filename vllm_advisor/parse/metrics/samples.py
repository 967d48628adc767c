"""Prometheus' text format: one sample a line.

See https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vllm_advisor.errors import InputError

_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?[ \t]*",
    re.ASCII,
)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_LARGEST = 1e18  # no count, and no sum of tokens or seconds, gets there


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value; ``line`` is 0 where it came from no text. It may be no finite number."""

    name: str
    labels: Mapping[str, str]
    value: float
    line: int = 0


def read_samples(text: str) -> Iterator[Sample]:
    """The samples of a text; lines that are none are passed over."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = _SAMPLE.fullmatch(line)
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            value = math.nan
        labels = {
            name: _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), text)
            for name, text in _LABEL.findall(match["labels"] or "")
        }
        yield Sample(name=match["name"], labels=labels, value=value, line=number)


def amount(sample: Sample, *, where: str, fix: str) -> float:
    """A count, a sum or a level, which is never negative.

    Raises:
        InputError: it is negative, no number, or larger than anything that is counted.
    """
    if not 0 <= sample.value <= _LARGEST:
        raise InputError(
            f"{sample.name} is {sample.value:g}, which is no measured value",
            where=f"{where}:{sample.line}" if sample.line else where,
            fix=fix,
        )
    return sample.value


def models_of(samples: Iterable[Sample]) -> tuple[str, ...]:
    """The models that samples are of, sorted."""
    return tuple(sorted({s.labels["model_name"] for s in samples if s.labels.get("model_name")}))
