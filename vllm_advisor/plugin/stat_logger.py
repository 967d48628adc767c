"""The class that vLLM's front end tells what its engines do."""

from __future__ import annotations

import importlib
import os
import time
import weakref
from typing import Any

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.engine_info import engine_info
from vllm_advisor.plugin.expected import Expected, expected_by, expected_of
from vllm_advisor.plugin.guard import say
from vllm_advisor.plugin.tally import Actual, Tally, line, prefix, size_verdict

_SHOW_EVERY = 1.0  # seconds between two settings of the gauges


def stat_logger_class() -> type:
    """The class, derived from vLLM's own.

    Raises:
        ImportError, AttributeError: this vLLM has no such base.
    """
    base = importlib.import_module("vllm.v1.metrics.loggers").StatLoggerBase
    return type("AdvisorStatLogger", (_Methods, base), {"__module__": __name__})


class _Methods:
    """What vLLM calls. The first fault ends the watching of this engine, and nothing else."""

    def __init__(self, vllm_config: Any = None, engine_index: int = 0, **_: Any) -> None:
        self._watch: Watch | None = None
        try:
            if variables.mode() != variables.OFF:
                self._watch = Watch(vllm_config, engine_index)
                # When vLLM lets go of the logger, or else when the process ends.
                weakref.finalize(self, _last_words, self._watch)
        except Exception as error:
            say("warning", f"the engine is not watched: {type(error).__name__}: {error}")

    def record(
        self, scheduler_stats: Any = None, iteration_stats: Any = None, *_: Any, **__: Any
    ) -> None:
        """One step of the engine."""
        if self._watch is not None:
            self._guarded("record", scheduler_stats, iteration_stats)

    def log_engine_initialized(self) -> None:
        """The engine is ready: its cache has a size."""
        if self._watch is not None:
            self._guarded("ready")

    def log(self) -> None:
        """Called every few seconds."""
        if self._watch is not None:
            self._guarded("tick")

    def record_sleep_state(self, *_: Any, **__: Any) -> None:
        """Nothing to compare."""

    def _guarded(self, method: str, *args: Any) -> None:
        try:
            getattr(self._watch, method)(*args)
        except Exception as error:
            if self._watch is not None:
                self._watch.over = True
            self._watch = None
            say("warning", f"the engine is no longer watched: {type(error).__name__}: {error}")


class Watch:
    """One engine, compared with what was expected of it.

    Args:
        vllm_config: the VllmConfig of the front end.
        engine: number of the engine.
    """

    def __init__(self, vllm_config: Any, engine: int) -> None:
        from vllm_advisor.plugin.gauges import Gauges

        self._config = vllm_config
        self._engine = engine
        self._interval = variables.interval()
        self.expected: Expected | None = expected_by(vllm_config)
        self.tally = Tally()
        self.actual = Actual()
        self._gauges = Gauges(_model_name(vllm_config), engine)
        self._told_at = self._shown_at = time.monotonic()
        self._told_requests = 0
        self.over = False
        self.process = os.getpid()

    def ready(self) -> None:
        """The cache has a size now, and all other loggers are made: compare it."""
        self._gauges.keep()
        predicted = expected_of(variables.marked_prediction())
        self.expected = self.expected or predicted  # the check was made beside the start
        self._gauges.describe(engine_info(self._config, predicted.gpu if predicted else ""))
        self._read_actual()
        same, text = size_verdict(self.actual, self.expected)
        planned = self.expected is not None and self.expected.by == "planned"
        if not same:
            say("warning", f"{self._prefix}{text}")
        elif planned:
            say("info", f"{self._prefix}{text}")
        self._show()

    def record(self, scheduler_stats: Any, iteration_stats: Any) -> None:
        """Count one step; cheap, as it is called for each."""
        before = self.tally.requests
        self.tally.add(scheduler_stats, iteration_stats)
        now = time.monotonic()
        if self.tally.requests != before or now - self._shown_at >= _SHOW_EVERY:
            self._shown_at = now
            self._show()
        if now - self._told_at >= self._interval:
            self.tell()

    def tick(self) -> None:
        """Show and tell what is due."""
        self._show()
        if time.monotonic() - self._told_at >= self._interval:
            self.tell()

    def tell(self, *, last: bool = False) -> None:
        """The verdict, unless no request has finished since the one before."""
        self._told_at = time.monotonic()
        if self.tally.requests == self._told_requests and not (last and self.tally.requests):
            return
        self._told_requests = self.tally.requests
        well, text = line(self.tally, self.actual, self.expected)
        say("info" if well else "warning", f"{self._prefix}{'at the end: ' if last else ''}{text}")

    @property
    def _prefix(self) -> str:
        return prefix(self.expected, self._engine)

    def _read_actual(self) -> None:
        cache = getattr(self._config, "cache_config", None)
        blocks = getattr(cache, "num_gpu_blocks", None)
        if blocks:
            blocks //= _engines(self._config)
        tokens = getattr(cache, "kv_cache_size_tokens", None)
        block = getattr(cache, "block_size", None)
        if tokens is None and blocks:  # 0.21 tells blocks alone
            tokens = round(blocks * (_worth(self.expected) or block or 0)) or None
        self.actual = Actual(
            tokens=tokens,
            num_gpu_blocks=blocks,
            max_concurrency=getattr(cache, "kv_cache_max_concurrency", None),
        )

    def _show(self) -> None:
        self._gauges.show(self.tally, self.actual, self.expected)


def _worth(expected: Expected | None) -> float | None:
    """Tokens that a block is worth: the same for all blocks of one model.

    What the check computed is of this very server; a plan may be of another block size.
    """
    for one in (expected_of(variables.marked_prediction()), expected):
        if one is not None and one.tokens and one.num_gpu_blocks:
            return one.tokens / one.num_gpu_blocks
    return None


def _engines(config: Any) -> int:
    """How many engines this front end talks to: it has the sum of their blocks in its config."""
    parallel = getattr(config, "parallel_config", None)
    own = getattr(parallel, "local_engines_only", False)
    many = getattr(parallel, f"data_parallel_size{'_local' if own else ''}", 1)
    if getattr(parallel, "data_parallel_rank_local", None) is not None:
        return 1  # somebody else starts the engines, one by one
    return many if isinstance(many, int) and many > 0 else 1


def _last_words(watch: Watch) -> None:
    try:
        if not watch.over and watch.process == os.getpid():  # not in a copy that was forked
            watch.tell(last=True)
    except Exception as error:
        say("debug", f"no last verdict: {type(error).__name__}: {error}")


def _model_name(config: Any) -> str:
    """The label of vLLM's own metrics."""
    name = getattr(getattr(config, "model_config", None), "served_model_name", "") or ""
    return str(name if isinstance(name, str) else name[0])
