"""What a starting vLLM knows of itself, as the facts that ``check`` and ``size`` take.

Every attribute may be absent in another version of vLLM: then the fact is not known.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

from vllm_advisor.api.hardware import node_of_probe
from vllm_advisor.api.models import find_model
from vllm_advisor.errors import AdvisorError, UnknownFactError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.probe.nvml import probe_node
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB

CPU = "cpu"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
# What vLLM resolved, by the part of VllmConfig that holds it.
_RESOLVED = {
    "parallel_config": (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "decode_context_parallel_size",
        "prefill_context_parallel_size",
        "enable_expert_parallel",
    ),
    "model_config": ("max_model_len",),
    "scheduler_config": ("max_num_batched_tokens", "max_num_seqs", "async_scheduling"),
    "cache_config": (
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "num_gpu_blocks_override",
        "enable_prefix_caching",
    ),
}
# What says nothing about memory, or names the model once more.
_LEFT_OUT = frozenset(
    ("model", "tokenizer", "served_model_name", "load_format", "seed", "revision")
)


def at(value: Any, *path: str) -> Any:
    """An attribute of an attribute; None where one is absent."""
    for name in path:
        value = getattr(value, name, None)
    return value


def vllm_version() -> str | None:
    """``0.32.0`` of ``0.32.0+cpu``; None of a build that is no release."""
    found = _RELEASE.match(str(at(sys.modules.get("vllm"), "__version__") or ""))
    return found[0] if found else None


def model_of(config: Any, name: str) -> ModelFacts:
    """Facts of the model: its folder, a bundled profile, or the config that vLLM has loaded.

    Args:
        config: a VllmConfig, or None where there is none.
        name: what the command calls the model; None of it is asked for anywhere but here.

    Raises:
        AdvisorError: nothing is known, or it is not modelled.
    """
    names = dict.fromkeys(str(n) for n in (at(config, "model_config", "model"), name) if n)
    for one in names:
        if Path(one).is_dir() or find_model_profile(one) is not None:
            return find_model(one)
    loaded = at(config, "model_config", "hf_config")
    if loaded is None or not callable(at(loaded, "to_dict")):
        raise UnknownFactError(f"no local facts of {name or 'the model'}")
    text = json.dumps(loaded.to_dict(), default=_plain)
    source = Source(SourceKind.HF, f"{name}/config.json")
    return model_facts(name, json.loads(text), source=source)


def _plain(value: Any) -> str:
    return str(value).removeprefix("torch.")


def device_type(config: Any) -> str:
    """``cuda``, ``cpu``, ...; empty if it is not known."""
    return str(at(config, "device_config", "device_type") or "")


def node(config: Any) -> Node:
    """The GPUs that this process may use.

    Raises:
        AdvisorError: there are none, or NVML does not know them.
    """
    kind = device_type(config)
    if kind and kind != "cuda":
        raise UnknownFactError(f"vLLM runs on {kind.upper()}")
    found = node_of_probe(probe_node())
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
    count = min(found.gpu_count, len(visible)) if visible else found.gpu_count
    return dataclasses.replace(found, gpu_count=count)


def arguments(config: Any, engine_args: Any) -> dict[str, Any]:
    """Engine arguments by vLLM's dest names: those that are no default, and what was resolved."""
    flags = load_engine(vllm_version()).flags
    args = {
        name: value
        for name, value in _given(engine_args).items()
        if name in flags and name not in _LEFT_OUT
    }
    for part, names in _RESOLVED.items():
        for name in names:
            value = at(config, part, name)
            if isinstance(value, bool | int | float) and name in flags:
                args[name] = value
    if device_type(config) == CPU:
        args |= _of_a_cpu(config)
    return args


def _of_a_cpu(config: Any) -> dict[str, Any]:
    """The CPU backend has a block size of its own, and its cache is sized by a variable."""
    found: dict[str, Any] = {}
    block = at(config, "cache_config", "block_size")
    if isinstance(block, int):
        found["block_size"] = block
    space = _number(os.environ.get("VLLM_CPU_KVCACHE_SPACE", ""))
    if space and not at(config, "cache_config", "kv_cache_memory_bytes"):
        found["kv_cache_memory_bytes"] = int(space * GIB)
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _given(engine_args: Any) -> dict[str, Any]:
    """Fields whose value is plain and not the default."""
    if not dataclasses.is_dataclass(engine_args):
        return {}
    found = {}
    for one in dataclasses.fields(engine_args):
        value = getattr(engine_args, one.name, None)
        default = one.default
        if one.default_factory is not dataclasses.MISSING:
            default = None if value else value
        if value is not None and _is_plain(value) and value != default:
            found[one.name] = value
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def reason(error: AdvisorError) -> str:
    """An error as part of a line."""
    return error.what.rstrip(".")
