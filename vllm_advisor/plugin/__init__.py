"""What vLLM loads from this package: a check before it starts, and a comparison while it runs.

Every process of a server imports this module, so it imports nothing itself. Nothing that happens
in here reaches vLLM, but for the refusal that ``VLLM_ADVISOR=strict`` asks for.
"""

from __future__ import annotations

from typing import Any

__all__ = ["StatLogger", "preflight"]


def preflight() -> None:
    """Entry point of ``vllm.general_plugins``: have this server checked when it starts.

    It only hangs itself into ``EngineArgs.create_engine_config``; it never raises.
    """
    try:
        from vllm_advisor.plugin.hook import install

        install()
    except Exception as error:
        from vllm_advisor.plugin.guard import say

        say("warning", f"not checked: {type(error).__name__}: {error}")


def __getattr__(name: str) -> Any:
    """``StatLogger``, the entry point of ``vllm.stat_logger_plugins``: a class made when asked for.

    Its base class is vLLM's, which must not be imported with this module.

    Raises:
        AttributeError: another name, or a vLLM whose loggers are not known; vLLM logs it and goes
            on without.
    """
    if name != "StatLogger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vllm_advisor.plugin.stat_logger import stat_logger_class

    try:
        return stat_logger_class()
    except Exception as error:
        raise AttributeError(f"no comparison with the plan: {error}") from None
