"""What an engine is, as labels of a gauge: its GPU, how many it takes, and its main settings."""

from __future__ import annotations

from typing import Any

_SETTINGS = {
    "gpus": ("parallel_config", "world_size"),
    "tensor_parallel_size": ("parallel_config", "tensor_parallel_size"),
    "pipeline_parallel_size": ("parallel_config", "pipeline_parallel_size"),
    "max_model_len": ("model_config", "max_model_len"),
    "max_num_seqs": ("scheduler_config", "max_num_seqs"),
    "max_num_batched_tokens": ("scheduler_config", "max_num_batched_tokens"),
    "kv_cache_dtype": ("cache_config", "cache_dtype"),
    "gpu_memory_utilization": ("cache_config", "gpu_memory_utilization"),
}
NAMES = ("gpu", *_SETTINGS)


def engine_info(config: Any, gpu: str) -> tuple[str, ...]:
    """Values of the labels, in the order of ``NAMES``; empty where this vLLM has no such setting.

    Args:
        config: the VllmConfig.
        gpu: GPU profile, empty if it is not known.
    """
    found = [gpu]
    for part, name in _SETTINGS.values():
        value = getattr(getattr(config, part, None), name, None)
        found.append(str(value) if isinstance(value, int | float | str) else "")
    return tuple(found)
