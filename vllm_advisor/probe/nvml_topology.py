"""How the GPUs of one node reach each other, as NVML tells."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from vllm_advisor.probe.nvml_queries import (
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NvmlQueries,
    as_text,
)


class GpuLink(StrEnum):
    """The closest link between two GPUs: NVLink, or NVML's nvmlGpuTopologyLevel_t."""

    SELF = "self"
    NVLINK = "nvlink"
    INTERNAL = "internal"  # on one board
    SINGLE = "single"  # one PCIe switch
    MULTIPLE = "multiple"  # several PCIe switches, no host bridge
    HOSTBRIDGE = "hostbridge"  # one PCIe host bridge
    NODE = "node"  # one NUMA node
    SYSTEM = "system"  # across the link between CPU sockets


_LEVELS = {
    0: GpuLink.INTERNAL,
    10: GpuLink.SINGLE,
    20: GpuLink.MULTIPLE,
    30: GpuLink.HOSTBRIDGE,
    40: GpuLink.NODE,
    50: GpuLink.SYSTEM,
}
_P2P_OK = 0
_P2P_NOT_SUPPORTED = 5
_NO_SUCH_LINK = -1


def active_nvlinks(nvml: NvmlQueries, index: int, handle: Any) -> tuple[int, ...] | None:
    """Numbers of the GPU's active NVLinks; empty on a GPU without NVLink."""
    active: list[int] = []
    for link in range(getattr(nvml.pynvml, "NVML_NVLINK_MAX_LINKS", 18)):
        state = nvml.ask(
            "nvmlDeviceGetNvLinkState",
            handle,
            link,
            about="NVLink state",
            gpu=index,
            answers={NOT_SUPPORTED: 0, INVALID_ARGUMENT: _NO_SUCH_LINK},
        )
        if state is None:
            return None
        if state == _NO_SUCH_LINK:
            break
        if state == 1:
            active.append(link)
    return tuple(active)


def topology_matrix(
    nvml: NvmlQueries, handles: Sequence[Any], nvlinks: Sequence[tuple[int, ...] | None]
) -> tuple[tuple[GpuLink | None, ...], ...]:
    """Link between every two GPUs.

    Args:
        nvml: the driver.
        handles: one per GPU.
        nvlinks: what :func:`active_nvlinks` said, one per GPU.
    """
    size = len(handles)
    rows: list[list[GpuLink | None]] = [[GpuLink.SELF] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1, size):
            nvlink = _joined_by_nvlink(nvml, handles[i], handles[j], nvlinks[i], nvlinks[j])
            link = GpuLink.NVLINK if nvlink else _common_ancestor(nvml, handles[i], handles[j])
            rows[i][j] = rows[j][i] = link
    return tuple(tuple(row) for row in rows)


def _joined_by_nvlink(
    nvml: NvmlQueries,
    first: Any,
    second: Any,
    first_links: tuple[int, ...] | None,
    second_links: tuple[int, ...] | None,
) -> bool:
    """The peer-to-peer status decides, as in vLLM; the links' far ends where it is not told.

    Through an NVSwitch every GPU has links to the switch only, and the status says OK.
    """
    if first_links == () or second_links == ():
        return False
    status = nvml.ask(
        "nvmlDeviceGetP2PStatus",
        first,
        second,
        nvml.pynvml.NVML_P2P_CAPS_INDEX_NVLINK,
        about="NVLink peer-to-peer status",
        answers={NOT_SUPPORTED: _P2P_NOT_SUPPORTED},
    )
    if status is not None:
        return bool(status == _P2P_OK)
    if not first_links or not second_links:
        return False
    if _ends_at_switch(nvml, first, first_links) and _ends_at_switch(nvml, second, second_links):
        return True
    address = _bus_id(nvml.ask("nvmlDeviceGetPciInfo", second, about="PCI address"))
    return address is not None and any(
        address == _bus_id(nvml.ask("nvmlDeviceGetNvLinkRemotePciInfo", first, n, about="NVLink"))
        for n in first_links
    )


def _ends_at_switch(nvml: NvmlQueries, handle: Any, links: tuple[int, ...]) -> bool:
    switch = getattr(nvml.pynvml, "NVML_NVLINK_DEVICE_TYPE_SWITCH", 2)
    return any(
        nvml.ask("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, about="NVLink", quiet=True)
        == switch
        for link in links
    )


def _bus_id(pci: Any | None) -> str | None:
    text = as_text(pci.busId) if pci is not None else None
    return text.lower() if text else None


def _common_ancestor(nvml: NvmlQueries, first: Any, second: Any) -> GpuLink | None:
    level = nvml.ask(
        "nvmlDeviceGetTopologyCommonAncestor", first, second, about="PCIe path between GPUs"
    )
    return None if level is None else _LEVELS.get(level)
