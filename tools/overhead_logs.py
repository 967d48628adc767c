"""The start-up logs of tests/data/startups.jsonl with the tensors that decide their memory."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vllm_advisor.sizing.cuda_graphs import capture_sizes
from vllm_advisor.sizing.overhead import (
    RankLink,
    hidden_bytes,
    logits_bytes,
    mlp_bytes,
    moe_workspace_bytes,
    rank_link,
)
from vllm_advisor.sizing.overhead_shape import OverheadShape
from vllm_advisor.units import GIB

LOGS = Path(__file__).parents[1] / "tests" / "data" / "startups.jsonl"
NVLINK = (
    "h100-sxm",
    "h200-sxm",
    "h20",
    "h20-3e",
    "gb200",
    "gh200-96",
    "a100-sxm4-40",
    "a100-sxm4-80",
)


@dataclass(frozen=True, slots=True)
class Log:
    """One start-up log, its tensors in GiB."""

    id: str
    version: tuple[int, ...]
    model: str
    trust: str
    gib: dict[str, float]
    shape: OverheadShape
    link: RankLink
    logits: float
    hidden: float
    mlp: float
    workspace: float
    rows: int
    tokens: int
    sizes: int
    requested: float
    graphs_in_activations: bool
    pipeline: bool
    weights_elsewhere: float  # of the same checkpoint and ranks in another log; 0: none
    unified: bool  # GPU and host share memory: what is consumed depends on the host

    @property
    def spent(self) -> float | None:
        """Everything beside weights and cache, where both are logged."""
        weights = self.gib.get("weights", self.weights_elsewhere)
        if not weights or "kv_cache" not in self.gib:
            return None
        return self.requested - weights - self.gib["kv_cache"]


def read_logs() -> list[Log]:
    """Every log of a known version whose model's dimensions are public."""
    lines = LOGS.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [_log(r) for r in rows if r["version"] and r.get("shape") and r["logged_gib"]]


def _log(row: dict[str, Any]) -> Log:
    args, batch = row["engine_args"], row["resolved"]
    shape = OverheadShape(**row["shape"])
    tp, pp = args.get("tensor_parallel_size", 1), args.get("pipeline_parallel_size", 1)
    tokens, rows = batch["max_num_batched_tokens"], batch["max_num_seqs"]
    capability = 100 if row["gpu"] == "gb200" else 90
    limit = args.get("max_cudagraph_capture_size")
    sizes = () if args.get("enforce_eager") else None
    sizes = sizes or capture_sizes(rows, tokens, capability, max_capture_size=limit)
    workspace = moe_workspace_bytes(
        shape, tokens, tp, expert_parallel=args.get("enable_expert_parallel", False)
    )
    return Log(
        id=row["id"],
        version=tuple(int(n) for n in row["version"].split(".")),
        model=row["logged_model"],
        trust=row["trust"],
        gib=row["logged_gib"],
        shape=shape,
        link=rank_link(
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            nvlink=row["gpu"] in NVLINK,
            unified_memory=row["gpu"] == "gb10",
        ),
        logits=logits_bytes(shape, rows) / GIB,
        hidden=hidden_bytes(shape, tokens) / GIB,
        mlp=mlp_bytes(shape, tokens, tp) / GIB,
        workspace=workspace / GIB if shape.num_experts else 0.0,
        rows=rows,
        tokens=tokens,
        sizes=0 if args.get("enforce_eager") else len(sizes),
        requested=row.get("gpu_total_gib", 0.0) * (batch["gpu_memory_utilization"] or 0.0),
        graphs_in_activations=row.get("activation_includes_graph_estimate", False),
        pipeline=pp > 1,
        weights_elsewhere=row.get("weights_elsewhere_gib", 0.0),
        unified=row["gpu"] == "gb10",
    )


def halves(logs: list[Log]) -> tuple[list[Log], list[Log]]:
    """Logs of every second model by name, and the rest."""
    names = sorted({g.model.lower() for g in logs})
    chosen = set(names[::2])
    return (
        [g for g in logs if g.model.lower() in chosen],
        [g for g in logs if g.model.lower() not in chosen],
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest absolute value that ``share`` of them do not exceed."""
    ordered = sorted(abs(v) for v in values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)] if ordered else 0.0


def before_start() -> list[dict[str, Any]]:
    """Total less free at start, by GPU and whether ranks are tensor-parallel."""
    found: dict[tuple[str, bool], list[float]] = {}
    for line in LOGS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        free, total = row["logged_gib"].get("free_at_start"), row.get("gpu_total_gib")
        if free is None or total is None or row["gpu"] is None or row.get("wsl"):
            continue
        parallel = row["engine_args"].get("tensor_parallel_size", 1) > 1
        found.setdefault((row["gpu"], parallel), []).append(total - free)
    return [
        {
            "gpu": gpu,
            "tensor_parallel": parallel,
            "gib": statistics.median(values),
            "min": min(values),
            "max": max(values),
            "logs": len(values),
        }
        for (gpu, parallel), values in sorted(found.items())
    ]


@dataclass(slots=True)
class Family:
    """Constants of one range of versions, and how well they do."""

    versions: str
    name: str
    first: tuple[int, ...]
    last: tuple[int, ...]  # exclusive
    moe_workspace: bool
    graphs_set_aside: bool
    constants: dict[str, float] = field(default_factory=dict)
    terms: dict[str, list[float]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    sample: int = 0
    error: float = 0.0

    def holds(self, log: Log) -> bool:
        """Whether the log's version belongs here."""
        return self.first <= log.version < self.last


def activations(log: Log, family: Family) -> float:
    """Peak of the profile run without graphs, in GiB (sizing/overhead.py#activation_bytes)."""
    c = family.constants
    sampler = c["logits_factor"] * log.logits + c["hidden_factor"] * log.hidden
    forward = log.mlp + c["forward_hidden_factor"] * log.hidden
    forward += c["sparse_mib_per_token"] / 1024 * log.tokens if log.shape.sparse_attention else 0.0
    total = max(sampler, forward) + c["constant"]
    total += log.workspace if family.moe_workspace else 0.0
    total += c["multimodal"] if log.shape.multimodal else 0.0
    return total + (2 * log.hidden if log.pipeline else 0.0)


def spent(log: Log, family: Family) -> float:
    """What the constants say is taken beside weights and cache, in GiB."""
    c = family.constants
    total = activations(log, family) + c[f"non_torch_{log.link.value}"]
    if family.graphs_set_aside and log.sizes:
        total += c["graph_base"] + c["graph_layer"] * log.shape.num_hidden_layers * log.sizes / 51
        total += c["graph_latent"] if log.shape.latent_attention else 0.0
    return total + c["sampler_state_factor"] * log.logits


def cache_misses(family: Family, logs: Iterable[Log]) -> list[tuple[Log, float]]:
    """GiB of KV cache predicted too little (negative) or too much, weights as logged."""
    found = []
    for log in logs:
        comparable = log.spent is not None and log.requested and log.trust[0] in "AB"
        if comparable and log.link is not RankLink.UNIFIED and not log.unified:
            found.append((log, log.spent - spent(log, family)))
    return found


def least_squares(features: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Coefficients of the best linear fit: (X'X) c = X'y by elimination with pivots."""
    count = len(features[0])
    matrix = [
        [sum(f[i] * f[j] for f in features) for j in range(count)]
        + [sum(f[i] * y for f, y in zip(features, values, strict=True))]
        for i in range(count)
    ]
    for column in range(count):
        pivot = max(range(column, count), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(count):
            if row != column:
                factor = matrix[row][column] / matrix[column][column]
                matrix[row] = [
                    a - factor * b for a, b in zip(matrix[row], matrix[column], strict=True)
                ]
    return [matrix[row][count] / matrix[row][row] for row in range(count)]
