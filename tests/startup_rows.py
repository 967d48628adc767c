"""Recorded starts (``data/startups.jsonl``) as the lines that vLLM printed of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "data" / "startups.jsonl"
_RESOLVED = ("max_num_batched_tokens", "max_num_seqs", "gpu_memory_utilization")
_DROPPED = ("max_cudagraph_capture_size",)  # not taken as it stands


def recorded_starts() -> list[dict[str, Any]]:
    """The rows whose model, version, GPU and KV cache memory are known."""
    rows = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    needed = ("version", "model", "gpu")
    return [r for r in rows if all(r[n] for n in needed) and "kv_cache" in r["logged_gib"]]


def log_lines(row: dict[str, Any]) -> list[str]:
    """The lines of a row, in the order of a start."""
    gib = row["logged_gib"]
    args = {k: v for k, v in row["engine_args"].items() if k not in _DROPPED}
    args |= {name: row["resolved"][name] for name in _RESOLVED if name in row["resolved"]}
    lines = [
        f"vLLM API server version {row['version']}",
        f"non-default args: {dict(model=row['model'], **args)!r}",
    ]
    total, free = row.get("gpu_total_gib"), gib.get("free_at_start")
    if total and free:
        share = args.get("gpu_memory_utilization", 0.9)
        lines.append(
            f"Free memory on device ({free}/{total} GiB) on startup. Desired GPU memory "
            f"utilization is ({share}, {total * share:.2f} GiB)."
        )
    if "weights" in gib:
        lines.append(f"Model loading took {gib['weights']} GiB memory and 5 seconds")
    if "cuda_graphs_estimate" in gib:
        lines.append(f"Estimated CUDA graph memory: {gib['cuda_graphs_estimate']} GiB total")
    lines.append(f"Available KV cache memory: {gib['kv_cache']} GiB")
    after = f"{gib.get('activations')} GiB for peak activation"
    captured = f"and {gib.get('cuda_graphs', 0)} GiB for CUDAGraph memory."
    if {"consumed", "activations"} <= gib.keys():
        consumed = f"{gib['consumed']} GiB for consumed memory (weights + non-torch)"
        lines.append(f"Actual usage is {consumed}, {after}, {captured}")
    elif {"weights", "non_torch", "activations"} <= gib.keys():
        non_torch = f"{gib['non_torch']} GiB for non-torch memory"
        lines.append(
            f"Actual usage is {gib['weights']} GiB for weight, {after}, {non_torch}, {captured}"
        )
    return lines
