"""GPUs of Kubernetes nodes, from the labels of NVIDIA's GPU Feature Discovery.

Labels (docs:https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery):
``nvidia.com/gpu.product`` is the NVML name with ``-`` for blanks, then ``-MIG-<profile>`` and
``-SHARED``; ``gpu.memory`` is in MiB; with MIG strategy ``single`` product, count and memory are
those of the MIG devices, with ``mixed`` each profile has labels ``nvidia.com/mig-<profile>.*``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.probe.node_objects import NodeObject, read_node_objects
from vllm_advisor.units import MIB

_PRODUCT_LABEL = "nvidia.com/gpu.product"
_PRODUCT = re.compile(r"(?P<gpu>.+?)(?:-MIG-(?P<mig>[^-]+))?(?P<shared>-SHARED)?")
_MIG_COUNT = re.compile(r"nvidia\.com/mig-(.+)\.count")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDevices:
    """MIG devices of one profile (``1g.10gb``) on each node; ``memory_total`` in bytes of one."""

    profile: str
    count: int
    memory_total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpus:
    """What one node's labels say of its GPUs."""

    product: str
    gpu_count: int
    memory_total: int | None
    compute_capability: tuple[int, int] | None
    driver_version: str | None
    mig_strategy: str | None
    mig_profile: str | None
    mig_devices: tuple[MigDevices, ...]
    sharing_strategy: str | None
    replicas: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledNodes(_Gpus):
    """``node_count`` equal nodes with ``gpu_count`` GPUs each, as their labels say.

    ``product`` is the label without MIG and sharing suffixes: ``NVIDIA-H100-80GB-HBM3``.
    ``gpu_count`` and ``memory_total`` (bytes, NVML's total) are of whole GPUs, except under MIG
    strategy ``single``, where the labels speak of the MIG devices alone: then ``mig_profile`` is
    set and they are of these. ``replicas`` above 1: so many pods share each GPU.
    """

    node_count: int
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuNode(_Gpus):
    """One node with GPUs."""

    name: str
    label: str  # nvidia.com/gpu.product as it stands

    @property
    def group(self) -> tuple[Any, ...]:
        """Nodes equal in this are one kind of node."""
        return (self.label, self.gpu_count, self.mig_devices, self.replicas)


def read_node_labels(path: Path, *, node: str | None = None) -> LabelledNodes:
    """Read the output of ``kubectl get node -o json`` (or ``-o yaml``): a Node or a List of them.

    Nodes without GPUs are passed over; the others have to be of one kind.

    Args:
        path: the file.
        node: name of the one node to read, where the file has several.

    Raises:
        InputError: no such file, no nodes in it, no such node, or nodes with different GPUs.
        UnknownFactError: no node has the labels, so GPU Feature Discovery does not run there.
    """
    objects = read_node_objects(path)
    if node is not None:
        chosen = tuple(item for item in objects if item.name == node)
        if not chosen:
            raise InputError(
                f"no node {node!r} in the file: it has {_listed(item.name for item in objects)}",
                where=str(path),
                fix="give the name of one of them",
            )
        objects = chosen
    nodes = [_gpu_node(item, str(path)) for item in objects if _PRODUCT_LABEL in item.labels]
    if not nodes:
        raise _unlabelled(objects, path)
    groups: dict[tuple[Any, ...], list[_GpuNode]] = {}
    for gpu_node in nodes:
        groups.setdefault(gpu_node.group, []).append(gpu_node)
    if len(groups) > 1:
        raise _mixed(list(groups.values()), path)
    return _joined(nodes, passed_over=len(objects) - len(nodes))


def _joined(nodes: list[_GpuNode], *, passed_over: int) -> LabelledNodes:
    first = nodes[0]
    memories = [n.memory_total for n in nodes if n.memory_total is not None]
    notes = [note for n in nodes for note in n.notes]
    if passed_over:
        notes.append(f"nodes without GPU labels passed over: {passed_over}")
    return LabelledNodes(
        product=first.product,
        gpu_count=first.gpu_count,
        node_count=len(nodes),
        memory_total=min(memories) if len(memories) == len(nodes) else None,
        compute_capability=first.compute_capability,
        driver_version=first.driver_version,
        node_names=tuple(n.name for n in nodes),
        mig_strategy=first.mig_strategy,
        mig_profile=first.mig_profile,
        mig_devices=first.mig_devices,
        sharing_strategy=first.sharing_strategy,
        replicas=first.replicas,
        notes=tuple(dict.fromkeys(notes)),
    )


def _gpu_node(item: NodeObject, file: str) -> _GpuNode:
    name, labels = item.name, item.labels

    def number(label: str) -> int | None:
        text = labels.get(label, "")
        if text and not text.isdecimal():
            raise InputError(
                f"label {label} of node {name} is {text!r}, which is no number",
                where=file,
                fix="read the labels from the cluster again",
            )
        return int(text) if text else None

    label = labels[_PRODUCT_LABEL]
    parts = _PRODUCT.fullmatch(label)
    product, mig_profile = (parts["gpu"], parts["mig"]) if parts else (label, None)
    if mig_profile == "INVALID":
        raise UnknownFactError(
            f"node {name} has a MIG layout its labels cannot tell ({label})",
            where=file,
            fix="give all its GPUs one MIG profile, set MIG strategy `mixed`, or name the GPU in "
            "`hardware:`",
        )
    replicas = number("nvidia.com/gpu.replicas") or 1
    count = number("nvidia.com/gpu.count")
    if count is None and item.gpu_capacity is not None:
        count = item.gpu_capacity // replicas
    if not count:
        raise UnknownFactError(
            f"node {name} does not say how many GPUs it has (nvidia.com/gpu.count)",
            where=file,
            fix="name the GPU and gpu_count in `hardware:`",
        )
    memory = number("nvidia.com/gpu.memory")
    major, minor = number("nvidia.com/gpu.compute.major"), number("nvidia.com/gpu.compute.minor")
    node = _GpuNode(
        name=name,
        label=label,
        product=product,
        gpu_count=count,
        memory_total=memory * MIB if memory else None,
        compute_capability=(major, minor or 0) if major is not None else None,
        driver_version=_driver_version(labels),
        mig_strategy=labels.get("nvidia.com/mig.strategy"),
        mig_profile=mig_profile,
        mig_devices=_mig_devices(labels, number),
        sharing_strategy=labels.get("nvidia.com/gpu.sharing-strategy"),
        replicas=replicas,
        notes=(),
    )
    return replace(node, notes=tuple(_notes(node, item)))


def _mig_devices(
    labels: Mapping[str, str], number: Callable[[str], int | None]
) -> tuple[MigDevices, ...]:
    """MIG devices by profile, which strategy ``mixed`` labels beside the whole GPUs."""
    devices: list[MigDevices] = []
    for label in sorted(labels):
        profile = _MIG_COUNT.fullmatch(label)
        count = number(label) if profile else None
        if profile and count:
            memory = number(f"nvidia.com/mig-{profile[1]}.memory")
            total = memory * MIB if memory else None
            devices.append(MigDevices(profile=profile[1], count=count, memory_total=total))
    return tuple(devices)


def _driver_version(labels: Mapping[str, str]) -> str | None:
    """``580.126.16``; older GFD writes its parts only."""
    full = labels.get("nvidia.com/cuda.driver-version.full")
    parts = (labels.get(f"nvidia.com/cuda.driver.{part}") for part in ("major", "minor", "rev"))
    return full or ".".join(part for part in parts if part) or None


def _notes(node: _GpuNode, item: NodeObject) -> Iterator[str]:
    """What a plan for this node has to know beyond the count of its GPUs."""
    if node.memory_total is None:
        yield "no nvidia.com/gpu.memory label: the driver tells no memory (unified memory?)"
    if node.mig_profile:
        yield (
            f"GPUs are split by MIG: gpu_count counts MIG devices {node.mig_profile}; "
            "a vLLM instance gets one of them, never several"
        )
    if node.mig_devices:
        split = ", ".join(f"{d.count} x {d.profile}" for d in node.mig_devices)
        whole = "" if item.gpu_capacity is None else f"; {item.gpu_capacity} GPUs are whole"
        yield f"node {node.name}: GPUs are split by MIG ({split}){whole}"
    if node.replicas > 1 or node.label.endswith("-SHARED"):
        strategy = node.sharing_strategy or "time-slicing"
        share = (
            f"each gets 1/{node.replicas} of its memory"
            if strategy == "mps"
            else "nothing keeps one from taking the memory of the others"
        )
        pods = f"up to {node.replicas} pods" if node.replicas > 1 else "several pods"
        yield f"each GPU is shared by {pods} ({strategy}): {share}"
    if item.cordoned:
        yield f"node {node.name} is cordoned: no pod is scheduled there"
    allocatable = item.gpu_allocatable
    if allocatable is None or node.mig_devices:
        return
    expected = node.gpu_count * node.replicas
    if allocatable < expected:
        yield f"node {node.name}: {allocatable} of {expected} nvidia.com/gpu can be allocated"
    elif allocatable > expected:
        yield f"node {node.name} has more GPUs than its labels describe: they are not all equal"


def _listed(names: Iterable[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def _unlabelled(objects: Sequence[NodeObject], path: Path) -> UnknownFactError:
    offers = [
        f"{o.name} offers {o.gpu_capacity} of unknown type" for o in objects if o.gpu_capacity
    ]
    what = f"no node has the label {_PRODUCT_LABEL}: GPU Feature Discovery is not running there"
    return UnknownFactError(
        "; ".join((what, *offers[:5])),
        where=str(path),
        fix="install NVIDIA's GPU Operator (or GPU Feature Discovery alone), or name a GPU profile "
        "in `hardware:` (`vllm-advisor profiles gpus` lists them)",
    )


def _mixed(groups: Sequence[list[_GpuNode]], path: Path) -> InputError:
    lines = []
    for nodes in groups:
        first = nodes[0]
        lines.append(f"{first.gpu_count} x {first.label} ({_listed(n.name for n in nodes)})")
    first = groups[0][0]
    selector = f"{_PRODUCT_LABEL}={first.label},nvidia.com/gpu.count={first.gpu_count}"
    return InputError(
        f"the nodes have different GPUs: {'; '.join(lines)}",
        where=str(path),
        fix=f"choose one group (`kubectl get nodes -l {selector} -o json > FILE`), or one "
        "node with `--node`",
    )
