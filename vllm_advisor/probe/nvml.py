"""What NVML says of this machine's GPUs, one guarded question at a time.

A driver answers some questions and not others: each unanswered one is ``None`` and a note.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.probe.nvml_processes import GpuProcess, gpu_processes
from vllm_advisor.probe.nvml_queries import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    NvmlQueries,
    as_text,
)
from vllm_advisor.probe.nvml_topology import GpuLink, active_nvlinks, topology_matrix
from vllm_advisor.types.accelerator import Interconnect

_NO_GPU_FIX = (
    "name a GPU profile in `hardware:` (`gpu: h100-sxm`; `vllm-advisor profiles gpus` lists them), "
    "or read a Kubernetes node with `vllm-advisor probe --from-node-labels FILE`"
)
_UNIFIED = "unified memory, vLLM takes free system memory"
_MEMORY_V2 = 0x02000028  # NVML_STRUCT_VERSION(Memory, 2), where pynvml does not name it


class VirtualizationMode(StrEnum):
    """NVML's nvmlGpuVirtualizationMode_t, in its order."""

    NONE = "none"
    PASSTHROUGH = "passthrough"
    VGPU = "vgpu"
    HOST_VGPU = "host_vgpu"
    HOST_VSGA = "host_vsga"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One MIG device; ``memory_total`` in bytes."""

    name: str | None
    memory_total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedGpu:
    """One GPU; ``None`` where NVML did not answer. Memory in bytes.

    ``memory_used`` is what contexts hold, without the driver's own ``memory_reserved``: as
    ``nvidia-smi`` prints it. PCIe generation and width are the most this GPU in this slot can
    do, since an idle link runs slower.
    """

    index: int
    name: str | None
    uuid: str | None
    memory_total: int | None
    memory_used: int | None
    memory_free: int | None
    memory_reserved: int | None
    compute_capability: tuple[int, int] | None
    power_limit_watts: int | None
    pcie_generation: int | None
    pcie_width: int | None
    mig_enabled: bool | None
    mig_instances: tuple[MigInstance, ...]
    virtualization_mode: VirtualizationMode | None
    nvlink_active_links: int | None
    processes: tuple[GpuProcess, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedNode:
    """This machine as NVML sees it.

    ``topology[i][j]`` is the link between ``gpus[i]`` and ``gpus[j]``, ``None`` if unknown.
    """

    gpus: tuple[ProbedGpu, ...]
    driver_version: str | None
    cuda_driver_version: str | None
    topology: tuple[tuple[GpuLink | None, ...], ...]
    notes: tuple[str, ...]

    @property
    def interconnect(self) -> Interconnect:
        """NVLink only if it joins every pair, which is what vLLM asks for too."""
        links = {link for row in self.topology for link in row} - {GpuLink.SELF}
        if links == {GpuLink.NVLINK}:
            return Interconnect.NVLINK
        return Interconnect.UNKNOWN if not links or None in links else Interconnect.PCIE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    total: int | None = None
    used: int | None = None
    free: int | None = None
    reserved: int | None = None


def probe_node() -> ProbedNode:
    """Ask NVML about every GPU of this machine.

    Raises:
        UnknownFactError: no NVIDIA driver here, no GPU, or none that can be opened.
    """
    try:
        import pynvml  # noqa: PLC0415 - only a probe needs it
    except ImportError as error:
        raise UnknownFactError(
            f"the NVML bindings cannot be loaded ({error})",
            where="nvidia-ml-py",
            fix=f"pip install nvidia-ml-py, or {_NO_GPU_FIX}",
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _no_gpu(f"NVML does not start: {error}") from None
    try:
        return _probe(NvmlQueries(pynvml))
    finally:
        with contextlib.suppress(pynvml.NVMLError):  # what was learnt stays true
            pynvml.nvmlShutdown()


def _no_gpu(what: str) -> UnknownFactError:
    return UnknownFactError(what, where="NVML", fix=_NO_GPU_FIX)


def _probe(nvml: NvmlQueries) -> ProbedNode:
    count = nvml.ask("nvmlDeviceGetCount", about="number of GPUs")
    if not count:
        raise _no_gpu("; ".join(("NVML finds no GPU", *nvml.notes)))
    handles: dict[int, Any] = {}
    for index in range(count):
        handle = nvml.ask("nvmlDeviceGetHandleByIndex", index, about="handle", gpu=index)
        if handle is not None:
            handles[index] = handle
    if not handles:
        raise _no_gpu("; ".join(("no GPU can be opened", *nvml.notes)))
    nvlinks = {index: active_nvlinks(nvml, index, handle) for index, handle in handles.items()}
    gpus = tuple(_probe_gpu(nvml, i, handle, nvlinks[i]) for i, handle in handles.items())
    topology = topology_matrix(nvml, tuple(handles.values()), tuple(nvlinks.values()))
    driver = nvml.text("nvmlSystemGetDriverVersion", about="driver version")
    cuda = _cuda_version(nvml)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        nvml.note(f"CUDA_VISIBLE_DEVICES={visible!r} is set: vLLM sees only those of the GPUs here")
    return ProbedNode(
        gpus=gpus,
        driver_version=driver,
        cuda_driver_version=cuda,
        topology=topology,
        notes=nvml.notes,
    )


def _cuda_version(nvml: NvmlQueries) -> str | None:
    """NVML writes CUDA 12.8 as 12080."""
    number = nvml.ask(
        "nvmlSystemGetCudaDriverVersion_v2",
        about="CUDA version",
        older=("nvmlSystemGetCudaDriverVersion",),
    )
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _probe_gpu(
    nvml: NvmlQueries, index: int, handle: Any, nvlinks: tuple[int, ...] | None
) -> ProbedGpu:
    def ask(function: str, about: str) -> Any | None:
        return nvml.ask(function, handle, about=about, gpu=index)

    memory = _memory(nvml, index, handle, hints={NOT_SUPPORTED: _UNIFIED})
    milliwatts = ask("nvmlDeviceGetEnforcedPowerLimit", "power limit")
    mig_enabled = _mig_enabled(nvml, index, handle)
    return ProbedGpu(
        index=index,
        name=as_text(ask("nvmlDeviceGetName", "name")),
        uuid=as_text(ask("nvmlDeviceGetUUID", "UUID")),
        memory_total=memory.total,
        memory_used=memory.used,
        memory_free=memory.free,
        memory_reserved=memory.reserved,
        compute_capability=ask("nvmlDeviceGetCudaComputeCapability", "compute capability"),
        power_limit_watts=None if milliwatts is None else round(milliwatts / 1000),
        pcie_generation=ask("nvmlDeviceGetMaxPcieLinkGeneration", "PCIe generation"),
        pcie_width=ask("nvmlDeviceGetMaxPcieLinkWidth", "PCIe width"),
        mig_enabled=mig_enabled,
        mig_instances=_mig_instances(nvml, index, handle) if mig_enabled else (),
        virtualization_mode=_virtualization_mode(nvml, index, handle),
        nvlink_active_links=None if nvlinks is None else len(nvlinks),
        processes=gpu_processes(nvml, index, handle),
    )


def _memory(
    nvml: NvmlQueries,
    index: int,
    handle: Any,
    *,
    about: str = "memory",
    hints: Mapping[str, str] | None = None,
) -> _Memory:
    """Version 2 of the answer keeps the driver's reserve apart; drivers before 510 lack it."""
    answer = nvml.ask(
        "nvmlDeviceGetMemoryInfo",
        handle,
        getattr(nvml.pynvml, "nvmlMemory_v2", _MEMORY_V2),
        about=about,
        gpu=index,
        hints=hints or {},
        older=("nvmlDeviceGetMemoryInfo", handle),
    )
    if answer is None:
        return _Memory()
    reserved = getattr(answer, "reserved", None)
    if reserved is None:
        nvml.note(f"{about} in use includes the driver's reserve (old driver)", gpu=index)
    return _Memory(total=answer.total, used=answer.used, free=answer.free, reserved=reserved)


def _mig_enabled(nvml: NvmlQueries, index: int, handle: Any) -> bool | None:
    modes = nvml.ask(
        "nvmlDeviceGetMigMode",
        handle,
        about="MIG mode",
        gpu=index,
        answers={NOT_SUPPORTED: (0, 0)},  # a GPU without MIG
    )
    if modes is None:
        return None
    current, pending = modes
    if current != pending:
        nvml.note("a change of the MIG mode waits for a GPU reset", gpu=index)
    return bool(current)


def _mig_instances(nvml: NvmlQueries, index: int, handle: Any) -> tuple[MigInstance, ...]:
    slots = nvml.ask("nvmlDeviceGetMaxMigDeviceCount", handle, about="MIG slots", gpu=index)
    instances: list[MigInstance] = []
    for slot in range(slots or 0):
        device = nvml.ask(
            "nvmlDeviceGetMigDeviceHandleByIndex",
            handle,
            slot,
            about="MIG instance",
            gpu=index,
            answers={NOT_FOUND: None, INVALID_ARGUMENT: None},  # an empty slot
        )
        if device is not None:
            name = nvml.text("nvmlDeviceGetName", device, about="MIG instance name", gpu=index)
            memory = _memory(nvml, index, device, about="MIG instance memory")
            instances.append(MigInstance(name=name, memory_total=memory.total))
    nvml.note(
        f"MIG is on, with {len(instances)} instances: vLLM gets one of them, never several",
        gpu=index,
    )
    return tuple(instances)


def _virtualization_mode(nvml: NvmlQueries, index: int, handle: Any) -> VirtualizationMode | None:
    number = nvml.ask(
        "nvmlDeviceGetVirtualizationMode", handle, about="virtualization mode", gpu=index
    )
    modes = tuple(VirtualizationMode)
    return modes[number] if number is not None and number < len(modes) else None
