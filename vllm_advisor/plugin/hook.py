"""Hangs the check behind ``EngineArgs.create_engine_config``, once, in the front end alone."""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.guard import say
from vllm_advisor.plugin.words import serve_command

_ARGUMENTS = "vllm.engine.arg_utils"
_METHOD = "create_engine_config"
_MARK = "_vllm_advisor"


def install() -> None:
    """Wrap the method, unless this process is none that starts a server, or it is done already."""
    variables.adopt()
    if variables.mode() == variables.OFF or variables.is_marked():
        return
    if multiprocessing.parent_process() is not None or serve_command() is None:
        return
    # vLLM loads its plugins out of this module; where it does not, there is nothing to wrap.
    module = sys.modules.get(_ARGUMENTS)
    engine_args = getattr(module, "EngineArgs", None)
    original = getattr(engine_args, _METHOD, None)
    if not callable(original):
        say("info", f"not checked: this vLLM has no EngineArgs.{_METHOD}")
        return
    if not getattr(original, _MARK, False):
        setattr(engine_args, _METHOD, _wrapped(original, _begin()))


def _wrapped(original: Callable[..., Any], prepared: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_engine_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        check = _taken(prepared)
        try:
            config = original(self, *args, **kwargs)
        except Exception:
            _finish(check, None, self)
            raise
        refusal = _finish(check, config, self)
        if refusal:
            raise ValueError(refusal)
        if check is not None:
            _arrange_the_end(config)
        return config

    setattr(create_engine_config, _MARK, True)
    return create_engine_config


def _begin() -> Any:
    """Start to read our facts while vLLM reads its own; None if it cannot be."""
    try:
        from vllm_advisor.plugin.checking import Preflight

        return Preflight()
    except Exception as error:
        say("warning", f"not checked: {type(error).__name__}: {error}")
        return None


def _taken(prepared: Any) -> Any:
    """The check, the first time; the mark tells it to this process and to those it starts."""
    try:
        if variables.is_marked():
            return None
        variables.set_mark(None)
    except Exception:
        return None
    return prepared


def _finish(check: Any, config: Any, engine_args: Any) -> str | None:
    """Why not to start, if it is to be refused."""
    if check is None:
        return None
    try:
        refusal: str | None = check.finish(config, engine_args)
    except Exception as error:
        say("warning", f"not checked: {type(error).__name__}: {error}")
        return None
    return refusal


def _arrange_the_end(config: Any) -> None:
    """Where others serve and this process only started them, it has the last word for them."""
    try:
        from vllm_advisor.plugin.together import arrange

        arrange(config)
    except Exception as error:
        say("debug", f"no last verdict: {type(error).__name__}: {error}")
