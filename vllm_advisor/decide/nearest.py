"""When nothing meets the request: the nearest things that would, each really tried."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from vllm_advisor.decide.candidate import FP8_CACHE, FP8_WEIGHTS, Setting
from vllm_advisor.decide.layout import Demands, Slot
from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.gpus import find_gpu, load_gpus
from vllm_advisor.units import format_tokens

_NODE_SIZES = (1, 2, 4, 8)
_LARGEST = _NODE_SIZES[-1]
_LEAST_CAPABILITY = 80  # older GPUs have no BF16, and new kernels leave them out one by one
Layout = Callable[[Demands, Setting], tuple[Slot, ...]]


def nearest(demands: Demands, setting: Setting, layout: Layout) -> tuple[str, ...]:
    """Suggestions, cheapest change first; empty when nothing that was tried would work."""
    found: list[str] = []
    loose = replace(
        setting,
        constraints=replace(
            setting.constraints,
            weight_quantization=(FP8_WEIGHTS,),
            kv_cache_dtypes=("auto", FP8_CACHE),
        ),
    )
    gpus = _gpus(demands, loose, layout)
    if gpus is not None:
        found.append(f"allow FP8 weights and an FP8 KV cache: {gpus} x {_name(setting)} then serve")
    found += _less(demands, setting, layout)
    found += _more_gpus(demands, setting, layout)
    found += _other_gpu(demands, setting, layout)
    return tuple(found)


def _name(setting: Setting) -> str:
    return setting.node.accelerator.id


def _gpus(demands: Demands, setting: Setting, layout: Layout) -> int | None:
    """GPUs a layout takes, or None when it does not work or takes more than allowed."""
    try:
        total = sum(slot.chosen.gpus for slot in layout(demands, setting))
    except AdvisorError:
        return None
    limit = setting.constraints.max_gpus or setting.node.total_gpus
    return total if total <= min(limit, setting.node.total_gpus) else None


def _less(demands: Demands, setting: Setting, layout: Layout) -> list[str]:
    """Shorter requests, or fewer at once, on the hardware as it is."""
    out = []
    for slot in layout(demands, setting):
        if slot.search.best is not None:
            continue
        sized = [c for c in slot.search.candidates if c.figures is not None]
        lengths = [
            (c.figures.capacity.estimated_max_model_len, c.label) for c in sized if c.figures
        ]
        fitting = [c for c in sized if c.figures and c.figures.starts]
        if fitting:
            best = max(
                fitting,
                key=lambda c: (
                    c.figures.capacity.num_gpu_blocks / c.needed_blocks if c.figures else 0
                ),
            )
            blocks = best.figures.capacity.num_gpu_blocks if best.figures else 0
            asked = sum(d.concurrency for d in best.demands)
            share = int(asked * blocks / best.needed_blocks)
            if share >= asked:
                out.append(f"{slot.name}: another target, or less traffic: {best.fails}")
                continue
            out.append(f"{slot.name}: about {share} of the {asked} requests at once ({best.label})")
        elif lengths and max(lengths)[0] > 0:
            length, label = max(lengths)
            out.append(
                f"{slot.name}: requests of at most {format_tokens(length)} tokens instead of "
                f"{format_tokens(slot.search.context.max_model_len)} ({label})"
            )
    return out


def _more_gpus(demands: Demands, setting: Setting, layout: Layout) -> list[str]:
    for count in _NODE_SIZES:
        if count <= setting.node.gpu_count:
            continue
        bigger = replace(
            setting,
            node=replace(setting.node, gpu_count=count),
            constraints=replace(setting.constraints, max_gpus=None),
        )
        gpus = _gpus(demands, bigger, layout)
        if gpus is not None:
            return [f"{gpus} x {_name(setting)} in one node, nothing else changed"]
    return []


def _other_gpu(demands: Demands, setting: Setting, layout: Layout) -> list[str]:
    """The cheapest bundled GPU type that serves the workload as it is stated."""
    priced = [gpu for gpu in map(find_gpu, load_gpus()) if gpu.price is not None]
    best: tuple[float, str] | None = None
    for gpu in sorted(priced, key=lambda gpu: gpu.price.usd_per_gpu_hour if gpu.price else 0.0):
        if gpu.id == setting.node.accelerator.id or gpu.unified_memory:
            continue
        if gpu.capability < _LEAST_CAPABILITY or gpu.price is None:
            continue
        # More of them would cost no less than what is found already.
        each = gpu.price.usd_per_gpu_hour
        most = _LARGEST if best is None else min(_LARGEST, math.ceil(best[0] / each) - 1)
        if most < 1:
            break
        other = replace(
            setting,
            node=replace(setting.node, accelerator=gpu, gpu_count=_LARGEST, node_count=1),
            constraints=replace(setting.constraints, max_gpus=most),
        )
        gpus = _gpus(demands, other, layout)
        if gpus is not None:
            best = (each * gpus, f"{gpus} x {gpu.id}")
    return [f"{best[1]} at about {best[0]:.2f} USD per hour"] if best else []
