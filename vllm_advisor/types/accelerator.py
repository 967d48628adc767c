"""GPUs and the node that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.types.source import Source


class Interconnect(StrEnum):
    """How the GPUs of one node reach each other."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A dated on-demand price of one GPU for one hour."""

    usd_per_gpu_hour: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """Facts of one GPU type.

    ``memory_total`` is what CUDA reports (``cudaMemGetInfo`` total), the figure vLLM multiplies
    with ``gpu_memory_utilization``; NVML's total is larger by the driver's reserve.
    """

    id: str
    name: str  # as NVML prints it
    memory_total: int  # bytes
    memory_total_source: Source
    compute_capability: tuple[int, int]
    memory_bandwidth: int | None = None  # bytes per second
    bf16_flops: int | None = None  # dense, per second
    fp8_flops: int | None = None
    fp4_flops: int | None = None  # of NVFP4 and MXFP4 matrices
    nvlink_bandwidth: int | None = None  # bytes per second, one direction
    pcie_bandwidth: int | None = None  # bytes per second, one direction
    unified_memory: bool = False
    price: Price | None = None

    @property
    def capability(self) -> int:
        """Compute capability as vLLM writes it: 8.9 is 89."""
        return self.compute_capability[0] * 10 + self.compute_capability[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """``gpu_count`` equal GPUs in each of ``node_count`` equal nodes.

    ``memory_used`` is held by other processes on the fullest GPU when the plan is made.
    """

    accelerator: Accelerator
    gpu_count: int
    node_count: int = 1
    interconnect: Interconnect = Interconnect.UNKNOWN
    memory_used: int = 0
    source: Source

    @property
    def total_gpus(self) -> int:
        """GPUs over all nodes."""
        return self.gpu_count * self.node_count
