"""Which servers of a source run on the same GPU at the same time: no rule, but two rules ask."""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import SourceSubject, Subject
from vllm_advisor.rules.ranks import local_engines, world_size

_MOST = 64  # GPUs of one host, and more than any has
_FLAGS = (
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "device_ids",
)


def share_of(subject: Subject) -> float:
    """The part of a GPU's memory that a server takes."""
    default = subject.engine.flags["gpu_memory_utilization"].default
    return float(subject.args.get("gpu_memory_utilization", default))


def fixed_cache(subject: Subject) -> bool:
    """Whether its KV cache is given in bytes, so that other servers do not change it."""
    return subject.args.get("kv_cache_memory_bytes") is not None


def together(source: SourceSubject) -> list[tuple[str, list[Subject]]]:
    """Each GPU on which several servers run at once, with these servers.

    Those of a Compose file run together. A command of a script ends before the next one begins,
    unless it is started in the background or detached.
    """
    gpus: dict[str, list[Subject]] = {}
    for subject in _at_once(source):
        for gpu in _gpus(subject):
            gpus.setdefault(gpu, []).append(subject)
    # One row for servers that share several GPUs.
    shared: dict[tuple[int, ...], tuple[str, list[Subject]]] = {}
    for gpu, servers in gpus.items():
        if len(servers) > 1:
            shared.setdefault(tuple(map(id, servers)), (gpu, servers))
    return [*shared.values()]


def _at_once(source: SourceSubject) -> Iterator[Subject]:
    if source.deployed.kind == "compose":
        yield from (one for one in source.subjects if _known(one))
        return
    if source.deployed.kind != "shell":
        return
    running = [
        one for one in source.subjects if one.instance is not None and one.instance.background
    ]
    if running:
        # One in the foreground runs beside those that were started before it.
        last = source.subjects[-1]
        if last not in running:
            running.append(last)
        yield from (one for one in running if _known(one))


def _known(subject: Subject) -> bool:
    return all(subject.why_unread(dest) is None for dest in _FLAGS)


def _gpus(subject: Subject) -> Iterator[str]:
    """The host's GPUs that a server takes: of those it may use the first, one for each rank."""
    instance = subject.instance
    pinned = [one.value for one in instance.devices] if instance else []
    ids = subject.args.get("device_ids")
    if isinstance(ids, list | tuple):
        pinned = [str(one) for one in ids]
    ranks = min(_MOST, world_size(subject) * local_engines(subject))
    yield from pinned[:ranks] if pinned else map(str, range(ranks))
