"""Why a value is what it is, as comments of rendered files tell it."""

from __future__ import annotations

from vllm_advisor.types.decision import Decision, Location


def because(origin: Decision | Location | None) -> str:
    """Reason, id and source of a decision; the place of a value that a person wrote."""
    if isinstance(origin, Decision):
        return f"{origin.reason} [{origin.id}; {origin.source}]"
    return f"[{origin}]" if origin is not None else ""
