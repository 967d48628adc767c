"""What ``vllm-advisor probe`` found, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import cell, counted, print_rows

# What the table has room for; the rest follows line by line.
_COLUMNS = ("index", "name", "memory_total", "memory_used", "compute_capability", "mig_enabled")

_NODE_KEYS = (
    "memory_total",
    "compute_capability",
    "driver_version",
    "mig_strategy",
    "mig_profile",
    "mig_devices",
    "sharing_strategy",
    "replicas",  # of time-slicing or MPS; one is the GPU itself
)


def print_probe(found: Mapping[str, Any]) -> None:
    """Print the driver, the GPUs and how they are linked.

    Args:
        found: ``driver_version``, ``cuda_driver_version``, ``gpus`` (one dict each), ``topology``
            (one row per GPU) and ``notes``.
    """
    page = Page()
    gpus: Sequence[Mapping[str, Any]] = found.get("gpus") or ()
    page.text(
        (counted(len(gpus), "GPU"), "bold"),
        f", driver {cell(found.get('driver_version'))}, "
        f"CUDA {cell(found.get('cuda_driver_version'))}",
    )
    if gpus:
        page.blank()
        print_rows(page, [{k: gpu[k] for k in _COLUMNS if k in gpu} for gpu in gpus])
        for index, gpu in enumerate(gpus):
            rest = [
                f"{key.replace('_', ' ')} {cell(value, key)}"
                for key, value in gpu.items()
                if key not in _COLUMNS and value not in (None, [], ())
            ]
            if rest:
                page.text(", ".join(rest), indent=2, bullet=f"GPU{gpu.get('index', index)}: ")
    _print_links(page, found)
    _print_notes(page, found)


def print_node_labels(found: Mapping[str, Any]) -> None:
    """Print what the labels of equal nodes say.

    Args:
        found: ``product``, ``gpu_count`` and ``memory_total`` of one node, ``node_count``,
            ``node_names``, ``notes``, whatever else is known, and ``hardware`` for a workload.
    """
    page = Page()
    page.text(
        (f"{counted(found['node_count'], 'node')} with {found['gpu_count']} x ", "bold"),
        (str(found["product"]), "bold"),
        f": {', '.join(found['node_names'])}",
    )
    for key in _NODE_KEYS:
        if found.get(key) not in (None, [], (), 1):
            page.text(f"{key.replace('_', ' ')} {cell(found[key], key)}", indent=2)
    page.text("for a workload: the same command with --format yaml", indent=2)
    _print_notes(page, found)


def _print_links(page: Page, found: Mapping[str, Any]) -> None:
    topology: Sequence[Sequence[Any]] = found.get("topology") or ()
    if len(topology) > 1:
        page.heading("Links")
        page.table(
            ("", *(f"GPU{index}" for index in range(len(topology)))),
            [
                (f"GPU{index}", *(cell(link) for link in links))
                for index, links in enumerate(topology)
            ],
        )


def _print_notes(page: Page, found: Mapping[str, Any]) -> None:
    notes: Sequence[str] = found.get("notes") or ()
    if notes:
        page.heading("Notes")
        for note in notes:
            page.text(note, indent=2, bullet="- ")
