"""The comparison as gauges beside vLLM's own metrics."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from vllm_advisor.plugin.engine_info import NAMES
from vllm_advisor.plugin.expected import Expected
from vllm_advisor.plugin.guard import say_once
from vllm_advisor.plugin.tally import Actual, Tally, deviation

PREFIX = "vllm_advisor:"
_LABELS = ("model_name", "engine")
_INFO = "engine_info"
# Name -> what it is, and how several API servers' values become one (prometheus_client's modes).
GAUGES = {
    "kv_cache_tokens": ("KV cache of one engine, in tokens.", "mostrecent"),
    "kv_cache_blocks": ("KV cache of one engine, in blocks.", "mostrecent"),
    "kv_cache_tokens_expected": ("KV cache as planned or predicted, in tokens.", "mostrecent"),
    "kv_cache_blocks_expected": ("KV cache as planned or predicted, in blocks.", "mostrecent"),
    "kv_cache_deviation": ("Actual over expected tokens, less 1.", "mostrecent"),
    "max_concurrency_expected": ("Requests of full length at once, as expected.", "mostrecent"),
    "kv_cache_usage_peak": ("Largest share of the KV cache in use since the start.", "max"),
    "requests_running_peak": ("Most requests that ran at once.", "max"),
    "requests_waiting_peak": ("Most requests that waited at once.", "max"),
    "preemptions": ("Preemptions since the start.", "sum"),
    "prefix_cache_queries": ("Prompt tokens looked up in the prefix cache.", "sum"),
    "prefix_cache_hits": ("Prompt tokens found in the prefix cache.", "sum"),
    "requests_finished": ("Requests finished since the start.", "sum"),
    "prompt_tokens": ("Prompt tokens of the requests that finished.", "sum"),
    "prompt_tokens_max": ("Longest prompt of a request that finished.", "max"),
    "output_tokens": ("Output tokens of the requests that finished.", "sum"),
    "output_tokens_max": ("Longest answer of a request that finished.", "max"),
}
_made: dict[str, Any] = {}  # by name: a process registers each once


class Gauges:
    """The gauges of one engine; without prometheus_client, or where it refuses, there are none.

    Args:
        model_name: label, as vLLM's own metrics have it.
        engine: number of the engine.
    """

    def __init__(self, model_name: str, engine: int) -> None:
        self._children: dict[str, Any] = {}
        self._place = (model_name, str(engine))
        try:
            gauge = importlib.import_module("prometheus_client").Gauge
            for name, (text, mode) in GAUGES.items():
                if name not in _made:
                    _made[name] = gauge(
                        f"{PREFIX}{name}", text, labelnames=_LABELS, multiprocess_mode=mode
                    )
                self._children[name] = _made[name].labels(*self._place)
        except Exception as error:
            self._children = {}
            say_once("info", f"no gauges: {type(error).__name__}: {error}")

    def describe(self, info: tuple[str, ...]) -> None:
        """Say what the engine is: a gauge that is 1, whose labels are those of ``engine_info``."""
        if not self._children:
            return
        try:
            if _INFO not in _made:
                _made[_INFO] = importlib.import_module("prometheus_client").Gauge(
                    f"{PREFIX}{_INFO}",
                    "What this engine is; always 1.",
                    labelnames=(*_LABELS, *NAMES),
                    multiprocess_mode="max",
                )
            _made[_INFO].labels(*self._place, *info).set(1)
        except Exception as error:
            say_once("info", f"no {_INFO}: {type(error).__name__}: {error}")

    def keep(self) -> None:
        """Put them back where they are read: some versions of vLLM take them away.

        Up to 0.24 or so its own metrics, which are made after all plugins, first clear the registry
        of all that has "vllm" in its name.
        """
        try:
            registry = importlib.import_module("prometheus_client").REGISTRY
            for name in self._children:
                with suppress(ValueError):  # it is there
                    registry.register(_made[name])
        except Exception as error:
            say_once("info", f"no gauges: {type(error).__name__}: {error}")

    def show(self, tally: Tally, actual: Actual, expected: Expected | None) -> None:
        """Set those whose value is known."""
        for name, value in values(tally, actual, expected):
            if name in self._children:
                self._children[name].set(value)


def values(tally: Tally, actual: Actual, expected: Expected | None) -> Iterator[tuple[str, float]]:
    """Name without prefix, and value, of what is known."""
    known = {
        "kv_cache_tokens": actual.tokens,
        "kv_cache_blocks": actual.num_gpu_blocks,
        "kv_cache_tokens_expected": expected.tokens if expected else None,
        "kv_cache_blocks_expected": expected.num_gpu_blocks if expected else None,
        "kv_cache_deviation": deviation(actual, expected),
        "max_concurrency_expected": expected.max_concurrency if expected else None,
        "kv_cache_usage_peak": tally.kv_usage_peak,
        "requests_running_peak": tally.running_peak,
        "requests_waiting_peak": tally.waiting_peak,
        "preemptions": tally.preemptions,
        "prefix_cache_queries": tally.prefix_queries,
        "prefix_cache_hits": tally.prefix_hits,
        "requests_finished": tally.requests,
        "prompt_tokens": tally.prompt_tokens,
        "prompt_tokens_max": tally.prompt_tokens_max,
        "output_tokens": tally.output_tokens,
        "output_tokens_max": tally.output_tokens_max,
    }
    for name, value in known.items():
        if value is not None:
            yield name, float(value)
