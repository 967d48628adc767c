"""vllm-advisor: plans, explains and checks vLLM deployments.

``from vllm_advisor import size, plan, check, estimate``: see :mod:`vllm_advisor.api`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vllm_advisor.version import __version__

if TYPE_CHECKING:
    from vllm_advisor.api import check, estimate, plan, size

__all__ = ["__version__", "check", "estimate", "plan", "size"]


def __getattr__(name: str) -> Any:
    """Load the interface on first use: ``import vllm_advisor`` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("vllm_advisor.api"), name)
