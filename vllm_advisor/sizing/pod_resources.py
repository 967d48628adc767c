"""What a pod of one vLLM server needs beside its GPUs: memory, CPU, disk, and time to start."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB, MIB, ceil_div, format_bytes, round_up

_SERVER_GIB = 8  # an API server and an engine core, of which each data-parallel engine has a pair
_RANK_GIB = 4  # CUDA context, PyTorch and pinned buffers of one GPU's worker process
_SHM_GIB = 2  # vLLM's own Kubernetes example
_SHARD_GIB = 5  # a file of a checkpoint, as Hugging Face's libraries split them
_DISK_GIB = 10  # logs, compiled kernels, temporary files
_READ_MIB_PER_SECOND = 500  # from a volume into the GPU
_PROCESS_SECONDS = 300  # imports, torch.compile, warm-up, CUDA graphs
_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """Requests of one pod; each figure says how it was reached.

    ``cpu`` is in cores, ``startup`` in seconds, the others in bytes. ``memory_limit`` has room for
    all weights in the page cache, ``memory_request`` for what a pod cannot give back. ``shm`` is
    ``None`` where the container's default of 64 MiB is enough; where it is not, both include it,
    because what is written to a memory-backed volume counts against the container's limit.
    """

    cpu: Figure
    memory_request: Figure
    memory_limit: Figure
    shm: Figure | None
    ephemeral_storage: Figure
    claim: Figure
    startup: Figure


def pod_resources(
    *,
    checkpoint_bytes: int,
    gpus: int,
    nodes: int = 1,
    engines: int = 1,
    download_mib_per_second: int | None,
    weights_on_node: bool,
) -> PodResources:
    """Requests of one pod of an instance.

    Args:
        checkpoint_bytes: files of the whole model.
        gpus: GPUs of this pod.
        nodes: pods that one replica is spread over.
        engines: data-parallel engines of the replica, all in this pod.
        download_mib_per_second: how fast the weights arrive; ``None`` where they are there already.
        weights_on_node: they are downloaded into the pod's own ephemeral storage.
    """
    size = format_bytes(checkpoint_bytes)
    shm = None if gpus == 1 and nodes == 1 else max(_SHM_GIB, gpus) * GIB
    held = (_SERVER_GIB * engines + _RANK_GIB * gpus) * GIB + (shm or 0)
    servers = f"{_SERVER_GIB} GiB server" + (f" x {engines} engines" if engines > 1 else "")
    holds = f"{servers} + {_RANK_GIB} GiB x {gpus} GPU processes" + (" + /dev/shm" if shm else "")
    weights = ceil_div(checkpoint_bytes, nodes)
    share = size if nodes == 1 else f"{size} / {nodes} pods"
    loading = min(weights, _SHARD_GIB * gpus * GIB)
    # A download in progress takes some more for a while.
    disk = _DISK_GIB * GIB + (round_up(checkpoint_bytes * 6 // 5, GIB) if weights_on_node else 0)
    return PodResources(
        cpu=_cpu(gpus, engines),
        memory_request=_figure(
            "pod.memory_request",
            round_up(held + loading, GIB),
            "bytes",
            f"{holds} + {format_bytes(loading)} of weights being read, at most a file of "
            f"{_SHARD_GIB} GiB per GPU",
            Source(SourceKind.ASSUMED, "host-memory"),
        ),
        memory_limit=_figure(
            "pod.memory_limit",
            round_up(held + weights, GIB),
            "bytes",
            f"{holds} + {share} of weights, which stay in the page cache while there is room",
            Source(SourceKind.ASSUMED, "host-memory"),
        ),
        shm=None if shm is None else _shm(shm),
        ephemeral_storage=_figure(
            "pod.ephemeral_storage",
            disk,
            "bytes",
            f"{_DISK_GIB} GiB for logs and temporary files"
            + (f" + {size} of weights and a fifth for a download" if weights_on_node else ""),
            Source(SourceKind.ASSUMED, "ephemeral-storage"),
        ),
        claim=_figure(
            "pod.claim",
            round_up(checkpoint_bytes * 6 // 5 + _DISK_GIB * GIB, 10 * GIB),
            "bytes",
            f"{size} of weights and a fifth for a download in progress, {_DISK_GIB} GiB for "
            "compiled kernels, in tens of GiB",
            Source(SourceKind.FORMULA, "model-claim"),
        ),
        startup=_startup(checkpoint_bytes, size, download_mib_per_second),
    )


def _cpu(gpus: int, engines: int) -> Figure:
    """One core per process, because those of engines and GPUs wait busily."""
    if engines == 1:
        parts = f"API server and engine core, and one busy-waiting process per GPU: 2 + {gpus}"
    else:
        parts = (
            "an API server and an engine core per data-parallel engine, their coordinator, and one "
            f"busy-waiting process per GPU: 2 x {engines} + 1 + {gpus}"
        )
    return _figure(
        "pod.cpu",
        2 * engines + (engines > 1) + gpus,
        "cores",
        parts,
        Source(SourceKind.DOCS, "docs.vllm.ai/en/latest/design/arch_overview"),
    )


def _shm(size: int) -> Figure:
    return _figure(
        "pod.shm",
        size,
        "bytes",
        "NCCL and vLLM's message queues between the GPU processes; the container default of "
        f"64 MiB is too small. {_SHM_GIB} GiB, or 1 GiB per GPU where there are more",
        Source(SourceKind.DOCS, "docs.vllm.ai/en/latest/deployment/k8s"),
    )


def _startup(checkpoint_bytes: int, size: str, download: int | None) -> Figure:
    read = ceil_div(checkpoint_bytes, _READ_MIB_PER_SECOND * MIB)
    fetch = ceil_div(checkpoint_bytes, download * MIB) if download else 0
    parts = [
        *([f"{size} downloaded at {download} MiB/s ({fetch:,} s)"] if download else []),
        f"read at {_READ_MIB_PER_SECOND} MiB/s ({read:,} s)",
        f"{_PROCESS_SECONDS} s for imports, torch.compile, warm-up and CUDA graphs",
    ]
    return _figure(
        "pod.startup",
        round_up(fetch + read + _PROCESS_SECONDS, _MINUTE),
        "seconds",
        ", ".join(parts) + ", in whole minutes",
        Source(SourceKind.ASSUMED, "start-up-rates"),
    )


def _figure(name: str, value: int, unit: str, formula: str, source: Source) -> Figure:
    return Figure(id=name, value=value, unit=unit, formula=formula, source=source)
