"""The GPUs that can be asked about, as PyTorch would report them."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeGPU:
    """What ``torch.cuda.get_device_properties`` tells.

    Attributes:
        name: NVML's product name; vLLM looks for words in it.
        capability: compute capability, major and minor.
        total_memory: bytes.
        multi_processor_count: streaming multiprocessors.
        shared_memory_per_block_optin: bytes one thread block can have (CUDA C++ Programming
            Guide, technical specifications per compute capability).
    """

    name: str
    capability: tuple[int, int]
    total_memory: int
    multi_processor_count: int

    @property
    def shared_memory_per_block_optin(self) -> int:
        kib = {(7, 0): 96, (7, 5): 64, (8, 0): 163, (9, 0): 227, (10, 0): 227}
        return kib.get(self.capability, 99) * KIB


def _gpu(name: str, major: int, minor: int, total_memory: int, processors: int) -> FakeGPU:
    return FakeGPU(
        name=name,
        capability=(major, minor),
        total_memory=total_memory,
        multi_processor_count=processors,
    )


GPUS = {
    "v100": _gpu("Tesla V100-SXM2-32GB", 7, 0, 34_079_637_504, 80),
    "t4": _gpu("Tesla T4", 7, 5, 15_828_320_256, 40),
    "a100": _gpu("NVIDIA A100-SXM4-80GB", 8, 0, 85_097_971_712, 108),
    "a10g": _gpu("NVIDIA A10G", 8, 6, 24_146_608_128, 80),
    "l40s": _gpu("NVIDIA L40S", 8, 9, 47_810_936_832, 142),
    "rtx4090": _gpu("NVIDIA GeForce RTX 4090", 8, 9, 25_757_220_864, 128),
    "h100": _gpu("NVIDIA H100 80GB HBM3", 9, 0, 85_520_809_984, 132),
    "h200": _gpu("NVIDIA H200", 9, 0, 150_754_820_096, 132),
    "b200": _gpu("NVIDIA B200", 10, 0, 191_512_641_536, 148),
    "rtx5090": _gpu("NVIDIA GeForce RTX 5090", 12, 0, 34_190_917_632, 170),
}
