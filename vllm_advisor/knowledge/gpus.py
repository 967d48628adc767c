"""GPU profiles: from a name as people, NVML or Kubernetes write it to an ``Accelerator``.

A GPU is known by its name, never by its memory: an H200 and an H20-3e report the same total and
differ sevenfold in arithmetic.

vLLM budgets with CUDA's total (``cudaMemGetInfo``), which is NVML's total less what the driver
keeps. Where nobody has printed the CUDA total of a GPU, it is taken as the NVML total less the
lower median of what is kept on all GPUs whose both totals are known. The difference is used and
not the ratio because it hardly grows with the card (about 0.4 GiB at 24 GB, 0.7 GiB at 180 GB).
Such a total has the source ``assumed:cuda-total-from-nvml``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from vllm_advisor import resources
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.profile_file import profile_names, read_profile
from vllm_advisor.types.accelerator import Accelerator, Price
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import MIB

ASSUMED_CUDA_TOTAL = Source(SourceKind.ASSUMED, "cuda-total-from-nvml")
_LIST = "see `vllm-advisor profiles gpus`, or describe the GPU in the workload file"
_WORDS_OF_VENDOR = ("nvidia-", "geforce-", "tesla-")
_SIZED = re.compile(r"(.+)-(\d+)gi?b?")  # "h20-96gb": a name followed by its memory
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceListing:
    """One on-demand price somebody asked, and who it was."""

    usd_per_gpu_hour: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """One file of ``profiles/gpus``.

    ``names`` are NVML's, ``labels`` the values of ``nvidia.com/gpu.product``, ``short_names`` what
    people write where it can mean nothing else. Bandwidths are in GB/s (10^9), peaks in dense
    TFLOP/s. ``sources`` has an entry for each figure that is not null.
    """

    id: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    compute_capability: str
    nvml_total_mib: int | None
    cuda_total_mib: int | None
    nominal_memory_gb: int
    unified_memory: bool = False
    memory_bandwidth_gb_s: float
    bf16_tflops_dense: float | None
    fp8_tflops_dense: float | None
    fp4_tflops_dense: float | None = None
    nvlink_gb_s_per_direction: float | None
    pcie: str
    tdp_w: float | None
    prices: tuple[PriceListing, ...]
    notes: str = ""
    sources: dict[str, str]

    def __post_init__(self) -> None:
        figures = {key: getattr(self, key) for key in FIGURES}
        unsound = [k for k, v in figures.items() if isinstance(v, int | float) and v <= 0]
        if unsound:
            raise ValueError(f"{', '.join(unsound)} has to be above zero")
        if self.nvml_total_mib is None and self.cuda_total_mib is None:
            raise ValueError("neither nvml_total_mib nor cuda_total_mib is known")
        unsourced = sorted(k for k, v in figures.items() if v and not self.sources.get(k))
        if unsourced:
            raise ValueError(f"no source for {', '.join(unsourced)}")


FIGURES = (
    "names",
    "labels",
    "compute_capability",
    "nvml_total_mib",
    "cuda_total_mib",
    "nominal_memory_gb",
    "memory_bandwidth_gb_s",
    "bf16_tflops_dense",
    "fp8_tflops_dense",
    "fp4_tflops_dense",
    "nvlink_gb_s_per_direction",
    "pcie",
    "tdp_w",
)


def load_gpus() -> tuple[str, ...]:
    """Ids of all bundled GPU profiles, sorted."""
    return profile_names(resources.profiles("gpus"))


def find_gpu(name: str) -> Accelerator:
    """The GPU of that id, NVML name, ``nvidia.com/gpu.product`` label or documented short name.

    Case, and blanks or dashes between words, do not matter; ``NVIDIA`` may be left out, and the
    memory may follow (``L4 24GB``). The beginning of an id (``h100``, ``a100 80GB``) is refused
    even where one profile alone fits: GPUs that are not bundled may fit, too.

    Raises:
        UnknownFactError: no profile has this name, or it can mean several GPUs.
    """
    wanted = _without_vendor(_normalise(name))
    sized = _SIZED.fullmatch(wanted)
    for key, memory_gb in ((wanted, None), *([(sized[1], int(sized[2]))] if sized else [])):
        gpu_id = key if key in load_gpus() else _by_name().get(key)
        if gpu_id and memory_gb in (None, gpu_profile(gpu_id).nominal_memory_gb):
            return _accelerator(gpu_profile(gpu_id))
    family, memory_gb = (sized[1], int(sized[2])) if sized else (wanted, None)
    relatives = [gpu_profile(i) for i in load_gpus() if f"{i}-".startswith(f"{family}-")]
    if relatives:
        of_size = [p for p in relatives if p.nominal_memory_gb == memory_gb] or relatives
        listed = "; ".join(f"{p.id} ({p.names[0]}, {_memory(p)})" for p in of_size)
        raise UnknownFactError(
            f"GPU {name!r} is no exact name; it may be {listed}",
            fix="write one of these ids",
        )
    close = difflib.get_close_matches(wanted, [*load_gpus(), *_by_name()], n=6, cutoff=0.6)
    ids = list(dict.fromkeys(_by_name().get(key, key) for key in close))
    near = f"; close: {', '.join(ids)}" if ids else ""
    raise UnknownFactError(f"no profile for GPU {name!r}{near}", fix=_LIST)


@cache
def gpu_profile(gpu_id: str) -> GpuProfile:
    """The profile of that id as its file has it, before anything is derived.

    Raises:
        UnknownFactError: there is no such file.
        InputError: the file breaks its schema.
    """
    if gpu_id not in load_gpus():
        raise UnknownFactError(f"no profile for GPU {gpu_id!r}", fix=_LIST)
    return read_profile(resources.profiles("gpus") / f"{gpu_id}.yaml", GpuProfile)


@cache
def driver_reserve_mib() -> int:
    """What driver and CUDA keep of NVML's total, in MiB: lower median of the known pairs."""
    return _median_low(
        p.nvml_total_mib - p.cuda_total_mib
        for p in map(gpu_profile, load_gpus())
        if p.nvml_total_mib and p.cuda_total_mib
    )


@cache
def _by_name() -> dict[str, str]:
    """Every name, label and short name as :func:`find_gpu` compares them, to its id."""
    return {
        _without_vendor(_normalise(name)): profile.id
        for profile in map(gpu_profile, load_gpus())
        for name in (*profile.names, *profile.labels, *profile.short_names)
    }


def _accelerator(profile: GpuProfile) -> Accelerator:
    def per_second(figure: float | None, unit: float) -> int | None:
        return None if figure is None else round(figure * unit)

    total_mib, source = profile.cuda_total_mib, _source(profile, "cuda_total_mib")
    if total_mib is None:
        total_mib = (profile.nvml_total_mib or 0) - driver_reserve_mib()
        source = ASSUMED_CUDA_TOTAL
    major, _, minor = profile.compute_capability.partition(".")
    return Accelerator(
        id=profile.id,
        name=profile.names[0],
        memory_total=total_mib * MIB,
        memory_total_source=source,
        compute_capability=(int(major), int(minor)),
        memory_bandwidth=per_second(profile.memory_bandwidth_gb_s, 1e9),
        bf16_flops=per_second(profile.bf16_tflops_dense, 1e12),
        fp8_flops=per_second(profile.fp8_tflops_dense, 1e12),
        fp4_flops=per_second(profile.fp4_tflops_dense, 1e12),
        nvlink_bandwidth=per_second(profile.nvlink_gb_s_per_direction, 1e9),
        pcie_bandwidth=_pcie_bandwidth(profile.pcie),
        unified_memory=profile.unified_memory,
        price=_price(profile),
    )


def _pcie_bandwidth(text: str) -> int | None:
    """Bytes per second in one direction of ``4.0 x16``; of ``4.0`` with its sixteen lanes."""
    match = re.fullmatch(r"(\d)\.0(?: x(\d+))?", text)
    if match is None:
        return None
    lane = 10**9 << (int(match[1]) - 3)  # 1 GB/s in generation 3, twice that in each next one
    return lane * int(match[2] or 16)


def _price(profile: GpuProfile) -> Price | None:
    """The listing at the lower median: a price somebody really asks, in the middle of the field."""
    if not profile.prices:
        return None
    usd = _median_low(listing.usd_per_gpu_hour for listing in profile.prices)
    index = [listing.usd_per_gpu_hour for listing in profile.prices].index(usd)
    where = f"prices.{index} ({profile.prices[index].source})"
    return Price(usd_per_gpu_hour=usd, source=_source(profile, where))


def _median_low(values: Iterable[_Number]) -> _Number:
    """The middle value; of two the lower one, so that it is always one that was given."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def _source(profile: GpuProfile, key: str) -> Source:
    return Source(SourceKind.PROFILE, f"gpus/{profile.id}#{key}")


def _memory(profile: GpuProfile) -> str:
    shared = " shared with the host" if profile.unified_memory else ""
    return f"{profile.nominal_memory_gb} GB{shared}"


def _normalise(name: str) -> str:
    return "-".join(name.casefold().replace("-", " ").replace("_", " ").split())


def _without_vendor(key: str) -> str:
    for word in _WORDS_OF_VENDOR:
        key = key.removeprefix(word)
    return key
