"""The processes that hold memory of a GPU, as NVML tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.probe.nvml_queries import NvmlQueries, as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds GPU memory; ``memory_used`` in bytes where the driver tells."""

    pid: int
    name: str | None
    memory_used: int | None


def gpu_processes(nvml: NvmlQueries, index: int, handle: Any) -> tuple[GpuProcess, ...] | None:
    """Processes with a compute or a graphics context; one with both is in both lists."""
    found: dict[int, int | None] = {}
    answered = False
    for kind in ("Compute", "Graphics"):
        function = f"nvmlDeviceGet{kind}RunningProcesses"
        running = nvml.ask(
            f"{function}_v3",
            handle,
            about="processes",
            gpu=index,
            older=(f"{function}_v2", handle),
        )
        answered = answered or running is not None
        for process in running or ():
            sizes = (found.get(process.pid), process.usedGpuMemory)
            found[process.pid] = max((size for size in sizes if size is not None), default=None)
    if not answered:
        return None
    return tuple(
        GpuProcess(pid=pid, name=_process_name(nvml, pid), memory_used=size)
        for pid, size in sorted(found.items())
    )


def _process_name(nvml: NvmlQueries, pid: int) -> str | None:
    """``None`` for a process of another container or user: common, so no note."""
    return as_text(nvml.ask("nvmlSystemGetProcessName", pid, about="process name", quiet=True))
