"""vllm-advisor: plans, explains and checks vLLM deployments.

``from vllm_advisor import size, plan, check``: see :mod:`vllm_advisor.api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm_advisor.api import check, plan, size

__version__ = "0.1.0"
__all__ = ["__version__", "check", "plan", "size"]


def __getattr__(name: str) -> Any:
    """Load the interface on first use: ``import vllm_advisor`` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vllm_advisor import api  # noqa: PLC0415 - only when something is asked for

    return getattr(api, name)
