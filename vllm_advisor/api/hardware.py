"""From the hardware a workload names to a Node: probe, node labels, profiles or a description."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.probe.node_labels import LabelledNodes, read_node_labels
from vllm_advisor.probe.nvml import ProbedGpu, ProbedNode, probe_node
from vllm_advisor.types.accelerator import Accelerator, Interconnect, Node, Price
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.workload import Hardware


def resolve_hardware(hardware: Hardware) -> Node:
    """The node a workload plans for.

    Raises:
        UnknownFactError: no driver, no labels, or a GPU nobody knows.
        InputError: GPUs of several kinds, or a labels file that cannot be read.
    """
    source = Source(SourceKind.USER, hardware.where or "hardware")
    if hardware.node is not None:
        return hardware.node
    if hardware.kind == "local":
        return node_of_probe(probe_node())
    if hardware.kind == "labels":
        return node_of_labels(read_node_labels(Path(hardware.labels_file)))
    gpu = find_gpu(hardware.gpu)
    if hardware.usd_per_gpu_hour is not None:
        gpu = replace(gpu, price=Price(usd_per_gpu_hour=hardware.usd_per_gpu_hour, source=source))
    return Node(
        accelerator=gpu,
        gpu_count=hardware.gpu_count,
        node_count=hardware.node_count,
        interconnect=Interconnect.NVLINK if gpu.nvlink_bandwidth else Interconnect.PCIE,
        source=source,
    )


def probe(node_labels: str | None = None, node_name: str | None = None) -> dict[str, Any]:
    """What this machine's NVML (or a node's labels) say, as plain data.

    The result has ``hardware``: a block that can be pasted into a workload file.

    Args:
        node_labels: file with ``kubectl get node -o json`` output; ``None`` asks NVML.
        node_name: which node of the file.
    """
    if node_labels is not None:
        labelled = read_node_labels(Path(node_labels), node=node_name)
        return {
            "schema_version": "1",
            **_plain(asdict(labelled)),
            "hardware": _described(node_of_labels(labelled)),
        }
    probed = probe_node()
    hardware: dict[str, Any] | None
    try:
        hardware = _described(node_of_probe(probed))
    except (InputError, UnknownFactError) as error:
        hardware = None
        probed_notes = (*probed.notes, f"no hardware block: {error.what}")
    else:
        probed_notes = probed.notes
    return {
        "schema_version": "1",
        **_plain(asdict(probed)),
        "notes": list(probed_notes),
        "interconnect": probed.interconnect.value,
        "hardware": hardware,
    }


def node_of_probe(probed: ProbedNode) -> Node:
    """A Node from what NVML said; its GPUs have to be equal.

    Raises:
        InputError: GPUs of several kinds, or MIG is on.
        UnknownFactError: NVML does not say enough and no profile knows the GPU.
    """
    first = probed.gpus[0]
    names = sorted({gpu.name or "?" for gpu in probed.gpus})
    if len(names) > 1:
        raise InputError(
            f"this machine has several kinds of GPU: {', '.join(names)}",
            where="nvml",
            fix="describe the ones to use: hardware: {gpu: ..., count: ...}",
        )
    if any(gpu.mig_enabled for gpu in probed.gpus):
        raise InputError(
            "MIG is enabled: vLLM would run on a slice of the GPU",
            where="nvml",
            fix="describe the slice: hardware: {described: {...}} with its memory",
        )
    return Node(
        accelerator=_accelerator(first),
        gpu_count=len(probed.gpus),
        interconnect=probed.interconnect,
        memory_used=max(gpu.memory_used or 0 for gpu in probed.gpus),
        source=Source(SourceKind.NVML, "0/name"),
    )


def node_of_labels(labelled: LabelledNodes) -> Node:
    """A Node from GPU Operator labels.

    Raises:
        InputError: the GPUs are MIG slices or shared in time.
    """
    if labelled.mig_profile or labelled.mig_devices or labelled.replicas > 1:
        raise InputError(
            "the node offers slices or shared GPUs: " + "; ".join(labelled.notes),
            where=", ".join(labelled.node_names),
            fix="describe what a pod gets: hardware: {described: {...}} with its memory",
        )
    gpu = find_gpu(labelled.product)
    return Node(
        accelerator=gpu,
        gpu_count=labelled.gpu_count,
        node_count=labelled.node_count,
        interconnect=Interconnect.NVLINK if gpu.nvlink_bandwidth else Interconnect.PCIE,
        source=Source(SourceKind.LABEL, f"nvidia.com/gpu.product={labelled.product}"),
    )


def _accelerator(gpu: ProbedGpu) -> Accelerator:
    name = gpu.name or "unnamed GPU"
    try:
        return find_gpu(name)
    except UnknownFactError:
        if gpu.memory_total is None or gpu.compute_capability is None:
            raise
    # CUDA sees less than NVML: what the driver reserves is not vLLM's to use.
    total = gpu.memory_total - (gpu.memory_reserved or 0)
    return Accelerator(
        id="local",
        name=name,
        memory_total=total,
        memory_total_source=Source(
            SourceKind.ASSUMED if gpu.memory_reserved is None else SourceKind.NVML,
            f"{gpu.index}/memory.total",
        ),
        compute_capability=gpu.compute_capability,
    )


def _described(node: Node) -> dict[str, Any]:
    """The node as a ``hardware:`` block; the keys are those of docs/workload.md."""
    gpu = node.accelerator
    major, minor = gpu.compute_capability
    block: dict[str, Any] = {
        "name": gpu.name,
        "gpu_memory_bytes": gpu.memory_total,
        "compute_capability": f"{major}.{minor}",
        "count": node.gpu_count,
        "nodes": node.node_count,
        "interconnect": node.interconnect.value,
        "memory_used": node.memory_used,
        "memory_bandwidth": gpu.memory_bandwidth,
        "nvlink_bandwidth": gpu.nvlink_bandwidth,
        "unified_memory": gpu.unified_memory or None,
        "usd_per_gpu_hour": gpu.price.usd_per_gpu_hour if gpu.price else None,
    }
    return {"described": {key: value for key, value in block.items() if value is not None}}


def _plain(value: Any) -> Any:
    """Enums and tuples as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return getattr(value, "value", value)
