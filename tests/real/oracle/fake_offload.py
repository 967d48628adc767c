"""Weights moved to the CPU: vLLM's own offloaders choose, on tensors that have no bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def install(config: Any) -> Any:
    """The offloader of these settings, as the model runner sets it; before a model is built."""
    from vllm.model_executor.offloader import base

    offloader = base.create_offloader(config.offload_config)
    if hasattr(offloader, "pin_memory"):
        offloader.pin_memory = False  # nothing is there to be pinned
    base.set_offloader(offloader)
    return offloader


@contextmanager
def meta_copies() -> Iterator[None]:
    """Copies to the CPU stay on the meta device: only their sizes are asked for."""
    import torch
    from vllm.model_executor.offloader import prefetch, uva

    move, view = torch.Tensor.to, uva.get_accelerator_view_from_cpu_tensor
    store = prefetch._CpuParamOffloader._offload_to_cpu_internal

    def stay(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor if kwargs == {"device": "cpu"} else move(tensor, *args, **kwargs)

    def keep(offloader: Any) -> None:
        data = offloader._param.data
        offloader._cpu_storage = data
        offloader.offloaded_bytes = data.numel() * data.element_size()

    torch.Tensor.to = stay
    uva.get_accelerator_view_from_cpu_tensor = lambda tensor: tensor
    prefetch._CpuParamOffloader._offload_to_cpu_internal = keep
    try:
        yield
    finally:
        torch.Tensor.to, uva.get_accelerator_view_from_cpu_tensor = move, view
        prefetch._CpuParamOffloader._offload_to_cpu_internal = store


def saved_bytes(offloader: Any) -> int | None:
    """Bytes of parameters that leave the GPU, less what the offloader allocates there for them."""
    from vllm.model_executor.offloader import prefetch

    moved = getattr(offloader, "cpu_offload_bytes", None)
    if moved is not None:
        return int(moved)
    modules = getattr(offloader, "module_offloaders", None)
    if modules is None:
        return None
    infos = [info for module in modules for info in module.get_param_infos()]
    pool = prefetch.StaticBufferPool(infos, offloader.prefetch_step, "meta")
    return sum(info.num_bytes for info in infos) - pool.total_bytes
