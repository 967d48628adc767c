"""Memory beside weights and cache, per family of vLLM versions, and what is gone before start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.specifiers import SpecifierSet

from vllm_advisor import resources
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB, MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """How far one term misses, in GiB."""

    logs: int
    median: float
    p90: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    versions: str
    logits_factor: float
    hidden_factor: float
    forward_hidden_factor: float
    constant_gib: float
    moe_workspace: bool
    multimodal_gib: float
    sparse_mib_per_token: float
    sampler_state_factor: float
    non_torch_none_gib: float
    non_torch_pipeline_gib: float
    non_torch_pcie_gib: float
    non_torch_nvlink_gib: float
    non_torch_unified_gib: float
    graph_base_gib: float
    graph_layer_gib: float
    graph_latent_gib: float
    graph_reference_sizes: int
    graph_actual_share: float
    graphs_set_aside: bool
    sample: int
    error_gib: float
    source: str
    terms: dict[str, _Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BeforeStart:
    gpu: str
    tensor_parallel: bool
    gib: float
    min: float
    max: float
    logs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    families: tuple[_Family, ...]
    before_start: tuple[_BeforeStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBeforeStart:
    """Total less free when vLLM takes its first snapshot: driver, CUDA context, NCCL.

    ``logs`` is 0 where no log of the GPU is known and others' median stands in.
    """

    size_bytes: int
    logs: int
    source: Source


@cache
def load_overheads(version: str) -> Overheads:
    """The constants that hold for a vLLM version.

    Raises:
        NotModelledError: no family of start-up logs covers the version.
    """
    for family in _file().families:
        if SpecifierSet(family.versions).contains(version, prereleases=True):
            return _overheads(family)
    raise NotModelledError(
        f"activation and graph memory of vLLM {version} is not known",
        where="vllm_version",
        fix="use vLLM 0.8 or later",
    )


def memory_before_start(
    gpu: str, *, tensor_parallel: bool, unified_memory: bool = False
) -> MemoryBeforeStart:
    """What is gone on an otherwise empty GPU before vLLM loads weights.

    Args:
        gpu: id of the GPU's profile.
        tensor_parallel: NCCL joins several ranks, which takes its buffers before the snapshot.
        unified_memory: GPU and host share memory: the host's own use counts.
    """
    entries = _file().before_start
    same = [e for e in entries if e.gpu == gpu]
    exact = [e for e in same if e.tensor_parallel is tensor_parallel]
    if exact:
        ref = f"before-start#{gpu}"
        return MemoryBeforeStart(
            size_bytes=round(exact[0].gib * GIB),
            logs=exact[0].logs,
            source=Source(SourceKind.MEASURED, ref),
        )
    # A GPU that shares the host's memory says nothing of one that does not, and the reverse.
    alike = same if unified_memory else [e for e in entries if not _shares_host_memory(e)]
    alike = [e for e in alike if e.tensor_parallel is tensor_parallel] or alike or list(entries)
    import statistics  # noqa: PLC0415 - brings random and decimal, and most GPUs have a log

    return MemoryBeforeStart(
        size_bytes=round(statistics.median(e.gib for e in alike) * GIB),
        logs=0,
        source=Source(SourceKind.ASSUMED, "before-start"),
    )


def _shares_host_memory(entry: _BeforeStart) -> bool:
    return entry.gpu == "gb10"


@cache
def _file() -> _File:
    path = resources.profiles("memory") / "overheads.yaml"
    return read_profile(path, _File)


def _overheads(family: _Family) -> Overheads:
    def size(gib: float) -> int:
        return round(gib * GIB)

    return Overheads(
        versions=family.versions,
        logits_factor=family.logits_factor,
        hidden_factor=family.hidden_factor,
        forward_hidden_factor=family.forward_hidden_factor,
        constant_bytes=size(family.constant_gib),
        moe_workspace=family.moe_workspace,
        multimodal_bytes=size(family.multimodal_gib),
        sparse_bytes_per_token=round(family.sparse_mib_per_token * MIB),
        sampler_state_factor=family.sampler_state_factor,
        non_torch_bytes=size(family.non_torch_none_gib),
        non_torch_pipeline_bytes=size(family.non_torch_pipeline_gib),
        non_torch_pcie_bytes=size(family.non_torch_pcie_gib),
        non_torch_nvlink_bytes=size(family.non_torch_nvlink_gib),
        non_torch_unified_bytes=size(family.non_torch_unified_gib),
        graph_base_bytes=size(family.graph_base_gib),
        graph_layer_bytes=size(family.graph_layer_gib),
        graph_latent_bytes=size(family.graph_latent_gib),
        graph_reference_sizes=family.graph_reference_sizes,
        graph_actual_share=family.graph_actual_share,
        graphs_set_aside=family.graphs_set_aside,
        sample=family.sample,
        error_bytes=size(family.error_gib),
        source=family.source,
    )
