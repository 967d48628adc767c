"""Makes decisions of one instance: ids, sources and the rule that nothing goes without a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.source import Source, SourceKind


def user(where: str) -> Source:
    """A value the workload states."""
    return Source(SourceKind.USER, where)


def formula(name: str) -> Source:
    """A value computed by a formula of this tool."""
    return Source(SourceKind.FORMULA, name)


def vllm(place: str) -> Source:
    """A rule of vLLM's own code: ``0.33.0:path#symbol``."""
    return Source(SourceKind.VLLM, place)


def counted(count: int, noun: str) -> str:
    """``1 replica``, ``2 replicas``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def instead_of(gpus: int, taken: int) -> str:
    """``2 GPUs instead of 1``."""
    return f"{counted(gpus, 'GPU')} instead of {taken}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose decisions these are: an instance's name, or ``plan``."""

    name: str

    def decide(
        self,
        subject: str,
        value: Any,
        reason: str,
        source: Source,
        *,
        flag: bool = True,
        because: tuple[str, ...] = (),
        rejected: tuple[Rejected, ...] = (),
    ) -> Decision:
        """A decision about a flag (``subject`` is its dest), or about something else."""
        return Decision(
            id=f"{self.name}.{subject.replace('_', '-')}",
            subject=subject,
            value=value,
            reason=reason,
            source=source,
            because=because,
            rejected=rejected,
            dest=subject if flag else None,
        )
