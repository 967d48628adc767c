"""The five ways in which workload.yaml names its hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from vllm_advisor.knowledge.workload_values import (
    UNREADABLE,
    Keys,
    Line,
    Positive,
    Price,
    Problem,
    Size,
    UsedSize,
)
from vllm_advisor.types.accelerator import Interconnect


def _float_text(value: Any) -> Any:
    return str(value) if isinstance(value, float) else value  # 9.0 needs no quotes


class GpuHardware(Keys):
    """Hardware named by its GPU."""

    gpu: Line = Field(
        description="A bundled GPU (`vllm-advisor profiles`), the name that nvidia-smi prints, or "
        "the node label nvidia.com/gpu.product."
    )
    count: Annotated[int, Field(ge=1, le=1024)] = Field(1, description="GPUs in one node.")
    nodes: Annotated[int, Field(ge=1, le=10_000)] = Field(1, description="Equal nodes.")
    usd_per_gpu_hour: Price | None = Field(
        None, description="Price of one GPU for one hour, instead of the bundled one."
    )


class AnyHardware(Keys):
    """Several kinds of hardware, of which the cheapest that serves is taken."""

    any_of: Annotated[list[GpuHardware], Field(min_length=2, max_length=16)] = Field(
        description="What is on offer: a list of {gpu, count, nodes, usd_per_gpu_hour}."
    )


class LabelledHardware(Keys):
    """Hardware read from a Kubernetes node."""

    node_labels: Line = Field(
        description="File from `kubectl get node NAME -o json`, relative to this file."
    )
    nodes: Annotated[int, Field(ge=1, le=10_000)] = Field(1, description="Equal nodes.")


class Described(Keys):
    """A node in full, as `vllm-advisor probe --format yaml` prints it."""

    name: Line = Field(description="The GPU's name as nvidia-smi prints it.")
    gpu_memory: Size | None = Field(
        None, description="Memory of one GPU as CUDA reports it, such as 79.19GiB."
    )
    gpu_memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)] | None = Field(
        None, description="The same in bytes; give one of the two."
    )
    compute_capability: Annotated[
        str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$"), BeforeValidator(_float_text)
    ] = Field(description='Compute capability, such as "9.0".')
    count: Annotated[int, Field(ge=1, le=1024)] = Field(1, description="GPUs in one node.")
    nodes: Annotated[int, Field(ge=1, le=10_000)] = Field(1, description="Equal nodes.")
    interconnect: Annotated[Interconnect, Field(strict=False)] = Field(
        Interconnect.UNKNOWN, description="Between the GPUs of a node: nvlink, pcie or unknown."
    )
    memory_used: UsedSize = Field(
        0, description="Memory that other processes hold on the fullest GPU; 0 unless given."
    )
    memory_bandwidth: Size | None = Field(None, description="Bytes per second, such as 3350GB.")
    nvlink_bandwidth: Size | None = Field(
        None, description="Bytes per second in one direction, such as 450GB."
    )
    bf16_tflops: Positive | None = Field(
        None, description="Dense BF16 operations per second, in 10^12: 989 for an H100 SXM."
    )
    fp8_tflops: Positive | None = Field(
        None, description="Dense FP8 operations per second, in 10^12."
    )
    unified_memory: bool = Field(default=False, description="The GPU shares the CPU's memory.")
    usd_per_gpu_hour: Price | None = Field(None, description="Price of one GPU for one hour.")

    def problems(self) -> Iterator[Problem]:
        """One figure for the memory, and not all of it used."""
        given = [k for k in ("gpu_memory", "gpu_memory_bytes") if getattr(self, k) is not None]
        if len(given) != 1:
            what = "both are given" if given else "the memory of the GPU is not given"
            fix = "give gpu_memory (79.19GiB) or gpu_memory_bytes"
            yield Problem(path=tuple(given[1:]), what=what, fix=fix)
        elif self.memory_used >= self.memory:
            what = f"{self.memory_used:,} bytes used leave nothing of {self.memory:,}"
            yield Problem(path=("memory_used",), what=what, fix="check the unit: GiB, GB or bytes")

    @property
    def memory(self) -> int:
        """Memory of one GPU, bytes."""
        return self.gpu_memory if self.gpu_memory is not None else self.gpu_memory_bytes or 0


class DescribedHardware(Keys):
    """Hardware described in full."""

    described: Described = Field(description="The node, as `vllm-advisor probe` prints it.")


def _hardware_form(value: Any) -> str | None:
    if isinstance(value, dict):
        forms = ("described", "node_labels", "any_of")
        return next((f"<{form}>" for form in forms if form in value), "<gpu>")
    return "<local>" if value == "local" else None


Hardware = Annotated[
    Annotated[Literal["local"], Tag("<local>")]
    | Annotated[GpuHardware, Tag("<gpu>")]
    | Annotated[LabelledHardware, Tag("<node_labels>")]
    | Annotated[DescribedHardware, Tag("<described>")]
    | Annotated[AnyHardware, Tag("<any_of>")],
    Discriminator(
        _hardware_form,
        custom_error_type=UNREADABLE,
        custom_error_message="hardware is `local` or a mapping such as {gpu: h100-sxm, count: 8}",
    ),
]
