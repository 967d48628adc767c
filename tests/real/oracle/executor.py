"""What the engine core sees of the workers, and what it writes into the config."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


class Executor:
    """Reports what the workers would, one per rank of a data parallel replica."""

    def __init__(self, config: Any, stages: SimpleNamespace, available: int) -> None:
        parallel = config.parallel_config
        self._per_stage = parallel.tensor_parallel_size * parallel.prefill_context_parallel_size
        self._config, self._stages, self._available = config, stages, available
        self.configs: list[Any] = []
        self.layout = ""

    def _of_workers(self, make: Callable[[Any], Any], stages: list[Any]) -> list[Any]:
        return [make(stage) for stage in stages for _ in range(self._per_stage)]

    def get_kv_cache_specs(self) -> list[dict[str, Any]]:
        return self._of_workers(dict, self._stages.specs)

    def get_supported_kv_cache_layouts(self) -> list[list[str]]:
        return self._of_workers(list, self._stages.layouts)

    def determine_available_memory(self) -> list[int]:
        return self._of_workers(lambda _: self._available, self._stages.specs)

    def set_kv_cache_layout(self, layout: str, *interleave: int) -> None:
        from vllm.v1.worker import worker_base

        self.layout = layout
        worker_base.record_kv_cache_layout(self._config.cache_config, layout)
        if interleave:
            self._config.parallel_config.cp_kv_cache_interleave_size = interleave[0]

    def initialize_from_config(self, configs: list[Any]) -> None:
        self.configs = configs

    def compile_or_warm_up_model(self) -> None:
        pass


@contextmanager
def unchanged(config: Any) -> Iterator[None]:
    """Undo what the engine core writes into the config, for the next run."""
    parts = (
        config.model_config,
        config.cache_config,
        config.scheduler_config,
        config.parallel_config,
    )
    saved = [dict(vars(part)) for part in parts]
    try:
        yield
    finally:
        for part, fields in zip(parts, saved, strict=True):
            vars(part).clear()
            vars(part).update(fields)
