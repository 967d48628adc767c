"""What one start-up log says of the memory beside the KV cache, and for which start it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vllm_advisor.types.source import Assumption, Source, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTerm:
    """One term of the fullest rank, in bytes: as predicted for the log's arguments, and as logged.

    ``of`` are the terms that a rest stands for, where the log has no line for each of them.
    """

    predicted: int
    logged: int
    of: tuple[str, ...] = ()

    @property
    def difference(self) -> int:
        """Logged less predicted: for what does not grow with the batch."""
        return self.logged - self.predicted

    def scaled(self, size: int) -> int:
        """``size`` x logged / predicted: for what grows with the batch."""
        return round(size * self.logged / self.predicted) if self.predicted else size


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCalibration:
    """The terms of one log, by name, for one GPU type, model and family of vLLM versions.

    ``settings`` are the resolved engine arguments of the log by their name, of those that a term
    can depend on; ``notes`` say what else the terms rest on. ``file`` is a name, not a path.
    """

    file: str
    gpu: str
    model: str
    vllm_version: str
    date: str
    terms: Mapping[str, LoggedTerm]
    settings: Mapping[str, Any]
    notes: tuple[Assumption, ...] = ()

    def source(self, term: str) -> Source:
        """Where a calibrated figure is from."""
        return Source(SourceKind.MEASURED, f"{self.file}#terms.{term}")
