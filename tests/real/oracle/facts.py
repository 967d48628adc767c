"""vLLM's objects as JSON: KV cache specs, groups, and what a model's tensors weigh."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

LAYER_NUMBER = re.compile(r"\.\d+(?=\.)")


def plain(value: Any) -> Any:
    """A value as JSON has it; enums by name, everything else by its text."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value).removeprefix("torch.")


def spec_facts(spec: Any) -> dict[str, Any]:
    """Class, page size and every field of a KV cache spec that is set."""
    fields = {
        field.name: plain(getattr(spec, field.name))
        for field in dataclasses.fields(spec)
        if field.name != "kv_cache_specs" and getattr(spec, field.name) is not None
    }
    return {"class": type(spec).__name__, "page_size_bytes": spec.page_size_bytes} | fields


def layer_facts(stages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The distinct specs of all stages, each with how many layers have it and the first's name."""
    found: dict[str, dict[str, Any]] = {}
    for specs in stages:
        for name, spec in specs.items():
            facts = spec_facts(spec)
            entry = found.setdefault(repr(facts), facts | {"layers": 0, "first": name})
            entry["layers"] += 1
    return list(found.values())


def group_facts(group: Any, vllm_config: Any) -> dict[str, Any]:
    """A KV cache group: its spec, its layers, and the blocks a request of full length takes."""
    spec = group.kv_cache_spec
    usage = spec.max_memory_usage_bytes(vllm_config)
    inner = getattr(spec, "kv_cache_specs", {})
    return spec_facts(spec) | {
        "layers": len(group.layer_names),
        "first": next(iter(group.layer_names), None),
        "blocks_per_request": -(-usage // spec.page_size_bytes),
        "inner": layer_facts([inner]) if inner else [],
    }


def _held(item: Any) -> Iterator[Any]:
    """The tensor that a plain attribute is, or those that a kernel's wrapper of tensors holds."""
    import torch

    if isinstance(item, torch.Tensor):
        yield item
    elif type(item).__module__.startswith("triton_kernels."):
        for inner in vars(item).values():
            yield from _held(inner)


def _attributes(module: Any) -> Iterator[tuple[str, Any]]:
    """Plain attributes of a module, and of the method that quantized it."""
    yield from vars(module).items()
    method = vars(module).get("quant_method")
    if hasattr(method, "__dict__"):
        yield from vars(method).items()


def _tensors(model: Any, seen: set[int]) -> Iterator[tuple[str, str, Any]]:
    """(kind, dotted name, tensor) of each tensor that is not ``seen``, however often it is shared."""
    for path, module in model.named_modules():
        held = [(key, tensor) for key, item in _attributes(module) for tensor in _held(item)]
        parameters, buffers = module._parameters.items(), module._buffers.items()
        for kind, members in (("parameter", parameters), ("buffer", buffers), ("other", held)):
            for key, tensor in members:
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield kind, f"{path}.{key}" if path else key, tensor


def weight_facts(model: Any, *, beside: Any = None) -> dict[str, Any]:
    """What one rank holds.

    Args:
        model: module.
        beside: another module, whose tensors are not counted again.

    Returns:
        ``params`` elements and ``param_bytes`` of parameters, ``buffer_bytes`` of buffers
        (RoPE tables among them), ``other_bytes`` of tensors kept as plain attributes on the
        device (MXFP4 weights once transformed), ``bytes_by_dtype`` of the parameters.
    """
    facts = {"params": 0, "param_bytes": 0, "buffer_bytes": 0, "other_bytes": 0}
    by_dtype: dict[str, int] = {}
    seen: set[int] = set()
    if beside is not None:
        list(_tensors(beside, seen))
    for kind, _, tensor in _tensors(model, seen):
        size = tensor.numel() * tensor.element_size()
        if kind == "parameter":
            facts["params"] += tensor.numel()
            facts["param_bytes"] += size
            dtype = plain(tensor.dtype)
            by_dtype[dtype] = by_dtype.get(dtype, 0) + size
        elif kind == "buffer":
            facts["buffer_bytes"] += size
        elif tensor.is_meta:
            facts["other_bytes"] += size
    return facts | {"bytes_by_dtype": by_dtype}


def component_facts(model: Any, *, beside: Any = None) -> list[dict[str, Any]]:
    """Tensors by name with layer numbers as ``*``, shape and dtype; how many there are of each.

    Those of another module, ``beside``, are not listed again.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    seen: set[int] = set()
    if beside is not None:
        list(_tensors(beside, seen))
    for kind, name, tensor in _tensors(model, seen):
        general = LAYER_NUMBER.sub(".*", name)
        shape = list(tensor.shape)
        key = (kind, general, str(shape), str(tensor.dtype))
        first = {"name": general, "kind": kind, "shape": shape, "dtype": plain(tensor.dtype)}
        entry = found.setdefault(key, first | {"count": 0, "bytes": 0})
        entry["count"] += 1
        entry["bytes"] += tensor.numel() * tensor.element_size()
    return list(found.values())
