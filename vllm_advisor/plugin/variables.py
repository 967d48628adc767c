"""The environment variables of the plugin, and the mark that a server was checked."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from vllm_advisor.plugin.guard import say_once

MODE = "VLLM_ADVISOR"
PLAN = "VLLM_ADVISOR_PLAN"
INSTANCE = "VLLM_ADVISOR_INSTANCE"
INTERVAL = "VLLM_ADVISOR_INTERVAL"
NAMES = (MODE, PLAN, INSTANCE, INTERVAL)

OFF, WARN, STRICT = "off", "warn", "strict"
_DEFAULT_INTERVAL = 600.0  # seconds
_SEVERAL_SERVERS = "PROMETHEUS_MULTIPROC_DIR"  # vLLM sets it before it makes its configuration
_MARK = "_VLLM_ADVISOR_PREFLIGHT"
# Not in the environment: C code of other threads may be reading that.
_here: dict[str, dict[str, Any] | None] = {}


def adopt() -> None:
    """Move the variables to names that vLLM does not take for its own.

    vLLM warns of every ``VLLM_...`` that it does not know, and refuses to start with
    ``--fail-on-environ-validation``. The processes it starts inherit the new names.
    """
    for name in NAMES:
        if name in os.environ:
            os.environ[f"_{name}"] = os.environ.pop(name)


def value(name: str) -> str:
    """A variable's text without blanks around it; empty if it is not set."""
    return (os.environ.get(name) or os.environ.get(f"_{name}") or "").strip()


def mode() -> str:
    """``off``, ``warn`` or ``strict``; another word is said once and means ``warn``."""
    given = value(MODE).lower() or WARN
    if given in (OFF, WARN, STRICT):
        return given
    say_once("warning", f"{MODE}={given} is none of off, warn, strict: taken for warn")
    return WARN


def interval() -> float:
    """Seconds between two verdicts; what is no positive number is said once and means 600."""
    given = value(INTERVAL)
    if not given:
        return _DEFAULT_INTERVAL
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds > 0:
        return seconds
    say_once("warning", f"{INTERVAL}={given} is no number of seconds: taken for 600")
    return _DEFAULT_INTERVAL


def several_servers() -> bool:
    """Whether this process starts API servers and does not serve itself."""
    return bool(os.environ.get(_SEVERAL_SERVERS))


def set_mark(prediction: dict[str, Any] | None) -> None:
    """Tell this process and those it starts that the server was checked, and what was predicted."""
    os.environ[_MARK] = json.dumps({"pid": os.getpid(), "prediction": prediction})


def set_prediction(prediction: dict[str, Any] | None) -> None:
    """Tell this process alone what was predicted, from any of its threads."""
    _here["prediction"] = prediction


def is_marked() -> bool:
    """Whether this server was checked, here or in the process that started this one."""
    return _MARK in os.environ


def marked_prediction() -> dict[str, Any] | None:
    """What the check predicted; None where there was none or the mark cannot be read."""
    if _here.get("prediction") is not None:
        return _here["prediction"]
    try:
        found = json.loads(os.environ.get(_MARK, "{}")).get("prediction")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None
