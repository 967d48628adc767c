"""What ``vllm-advisor probe`` found, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm_advisor.report.console import Page
from vllm_advisor.report.values import cell, counted, print_rows

# What the table has room for; the rest follows line by line.
_COLUMNS = ("index", "name", "memory_total", "memory_used", "compute_capability", "mig_enabled")


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
    notes: Sequence[str] = found.get("notes") or ()
    if notes:
        page.heading("Notes")
        for note in notes:
            page.text(note, indent=2, bullet="- ")
