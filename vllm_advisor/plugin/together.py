"""The last word of a server with several API servers.

vLLM kills these at the end, so none of them can speak. What they showed as gauges lies in the files
of prometheus_client until the process that started them has ended.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from contextlib import suppress
from dataclasses import fields
from typing import Any

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.expected import Expected, expected_by
from vllm_advisor.plugin.gauges import PREFIX
from vllm_advisor.plugin.guard import Running, TimeOverError, say
from vllm_advisor.plugin.tally import Actual, Tally, line, prefix

_WATCHING = "vllm_advisor.plugin.stat_logger"  # loaded by vLLM where requests are served
_TALLIED = {
    "kv_cache_usage_peak": "kv_usage_peak",
    "requests_running_peak": "running_peak",
    "requests_waiting_peak": "waiting_peak",
    "prefix_cache_queries": "prefix_queries",
    "prefix_cache_hits": "prefix_hits",
    "requests_finished": "requests",
}


def arrange(config: Any) -> None:
    """Sum up when this process ends; where it serves by itself, that is not needed.

    Args:
        config: the VllmConfig.
    """
    if variables.several_servers():
        # A plan is read beside the start, and not at the end: then no thread can be started.
        reading = Running(lambda: expected_by(config))
        # vLLM's folder is still there then: what is registered last comes first.
        atexit.register(last_words, reading, os.getpid())


def last_words(reading: Running[Expected | None], process: int) -> None:
    """One line for each engine that served something.

    Args:
        reading: gives what the server was to hold.
        process: the one that is to speak; a copy of it is not.
    """
    if process != os.getpid() or _WATCHING in sys.modules:
        return
    try:
        expected = None
        with suppress(TimeOverError, RuntimeError):
            expected = reading.result(0.0)
        for engine, shown in sorted(_shown().items()):
            tally, actual = _tally(shown), _actual(shown)
            if tally.requests:
                well, text = line(tally, actual, expected)
                start = f"{prefix(expected, engine)}at the end, all API servers together: "
                say("info" if well else "warning", f"{start}{text}")
    except Exception as error:
        say("debug", f"no last verdict: {type(error).__name__}: {error}")


def _shown() -> dict[int, dict[str, float]]:
    """Values of our gauges by name without prefix, by number of the engine."""
    client = importlib.import_module("prometheus_client")
    multiprocess = importlib.import_module("prometheus_client.multiprocess")
    collector = multiprocess.MultiProcessCollector(client.CollectorRegistry())
    found: dict[int, dict[str, float]] = {}
    for metric in collector.collect():
        for sample in metric.samples if metric.name.startswith(PREFIX) else ():
            engine = found.setdefault(int(sample.labels["engine"]), {})
            engine[metric.name.removeprefix(PREFIX)] = sample.value
    return found


def _tally(shown: dict[str, float]) -> Tally:
    tally = Tally()
    for one in fields(Tally):
        name = next((n for n, field in _TALLIED.items() if field == one.name), one.name)
        if name in shown:
            setattr(tally, one.name, type(getattr(tally, one.name))(shown[name]))
    return tally


def _actual(shown: dict[str, float]) -> Actual:
    tokens, blocks = shown.get("kv_cache_tokens"), shown.get("kv_cache_blocks")
    return Actual(
        tokens=None if tokens is None else int(tokens),
        num_gpu_blocks=None if blocks is None else int(blocks),
    )
