"""The constants of latency, as ``tools/fit_latency.py`` wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vllm_advisor import resources
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.latency import LatencyConstants, LatencyFit, Range
from vllm_advisor.types.source import Source, SourceKind

_ENOUGH = 5  # rows of a GPU type, from which it counts as measured


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    origin: str
    date: str
    sample: int
    gpus: dict[str, int]
    constants: LatencyConstants
    ranges: dict[str, Range]
    errors: dict[str, dict[str, float]]


@cache
def load_latency() -> LatencyFit:
    """The bundled fit.

    Raises:
        InputError: the installation is broken.
    """
    file = read_profile(resources.profiles("latency") / "constants.yaml", _File)
    return LatencyFit(
        constants=file.constants,
        ranges=file.ranges,
        origin=file.origin,
        date=file.date,
        sample=file.sample,
        gpus=frozenset(gpu for gpu, rows in file.gpus.items() if rows >= _ENOUGH),
        source=Source(SourceKind.MEASURED, "latency#constants"),
    )
