"""The memory budget against real start-up logs: weights, KV cache bytes, tokens, refusals.

Two ways: with weights as logged, so that only the overhead is measured, and with weights predicted
as well, the whole chain, where the model is modelled. Misses are shares of the logged figure.
Batch sizes a log does not print are its version's defaults for the GPU (``resolved``).
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError, NotModelledError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.overhead import rank_overheads
from vllm_advisor.sizing.overhead_shape import OverheadShape
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import GIB

DATA = Path(__file__).parents[1] / "tests" / "data" / "startups.jsonl"
FAMILIES = ((0.17, "0.10-0.16"), (0.21, "0.17-0.20"), (0.29, "0.21-0.28"), (9.0, "0.29 and later"))
TARGETS = {"weights": 0.005, "kv_median": 0.01, "kv_p90": 0.05}
# Other things in the log than these are not arguments resolve_settings takes as they stand.
DROPPED = ("max_cudagraph_capture_size",)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One log: ours over logged, less one. ``None`` where either is missing."""

    row: Row
    weights: float | None = None
    kv_cache: float | None = None
    kv_gib: float | None = None
    tokens: float | None = None
    why: str = ""  # not predicted, and why
    fits: bool | None = None


def accelerator(row: Row) -> Accelerator:
    """The GPU with the memory its log prints; an unnamed card where the log names none."""
    total = round(row["gpu_total_gib"] * GIB) if "gpu_total_gib" in row else None
    if row["gpu"]:
        gpu = find_gpu(row["gpu"])
        return replace(gpu, memory_total=total) if total else gpu
    if total is None:
        raise NotModelledError("neither the GPU nor its memory is in the log")
    major, minor = row["compute_capability"].split(".")
    return Accelerator(
        id="unnamed",
        name="an unnamed card",
        memory_total=total,
        memory_total_source=Source(SourceKind.MEASURED, row["id"]),
        compute_capability=(int(major), int(minor)),
    )


def family(row: Row) -> str:
    if not row["version"]:
        return "not stated"
    major, minor, *_ = row["version"].split(".")
    return next(name for below, name in FAMILIES if int(major) + int(minor) / 100 < below)


def with_logged_weights(row: Row) -> Compared:
    """KV cache = requested - logged weights - our overhead."""
    logged = row["logged_gib"]
    if not row["version"]:
        return Compared(row=row, why="no version in the log")
    if not row.get("shape"):
        return Compared(row=row, why="dimensions of the model are not public")
    if not {"weights", "kv_cache"} <= logged.keys():
        return Compared(row=row, why="weights or KV cache not in the log")
    gpu, overheads = accelerator(row), load_overheads(row["version"])
    shape, args, batch = OverheadShape(**row["shape"]), row["engine_args"], row["resolved"]
    if args.get("language_model_only"):
        shape = replace(shape, multimodal=False)
    if "max_cudagraph_capture_size" in args:
        shape = replace(shape, max_capture_size=args["max_cudagraph_capture_size"])
    settings = InstanceSettings(
        max_model_len=0,
        max_num_batched_tokens=batch["max_num_batched_tokens"],
        max_num_seqs=batch["max_num_seqs"],
        gpu_memory_utilization=batch["gpu_memory_utilization"],
        block_size=16,
        attention_backend="",
        tensor_parallel_size=args.get("tensor_parallel_size", 1),
        pipeline_parallel_size=args.get("pipeline_parallel_size", 1),
        data_parallel_size=args.get("data_parallel_size", 1),
        enable_expert_parallel=args.get("enable_expert_parallel", False),
        enforce_eager=args.get("enforce_eager", False),
    )
    spent = rank_overheads(shape, settings, gpu, overheads).total
    requested = math.ceil(gpu.memory_total * batch["gpu_memory_utilization"])
    ours = (requested - spent) / GIB - logged["weights"]
    return Compared(
        row=row,
        kv_cache=_share(ours, logged["kv_cache"]),
        kv_gib=ours - logged["kv_cache"],
        fits=ours > 0,
    )


def whole_chain(row: Row) -> Compared:
    """Weights, cache and tokens as ``size`` gives them for the log's arguments."""
    if not row["version"]:
        return Compared(row=row, why="no version in the log")
    if not row["model"]:
        return Compared(row=row, why="checkpoint not bundled")
    try:
        facts = _facts(row)
        figures = _figures(row, facts)
    except AdvisorError as error:
        return Compared(row=row, why=f"{type(error).__name__}: {error.what}")
    budget = figures.budget
    if budget is None:
        return Compared(row=row, why="no budget")
    logged = row["logged_gib"]
    weights = int(budget.weights.value) / GIB
    cache = int(budget.kv_cache.value) / GIB
    # Before 0.21 the line of windowed models counted something else (vllm-project/vllm#40691).
    one_meaning = len(figures.capacity.groups) == 1 or row["version"] >= "0.21"
    counted = row.get("kv_tokens") if one_meaning else None
    return Compared(
        row=row,
        weights=_share(weights, logged.get("weights")),
        kv_cache=_share(cache, logged.get("kv_cache")),
        kv_gib=cache - logged["kv_cache"] if "kv_cache" in logged else None,
        tokens=_share(figures.capacity.tokens, counted),
        fits=figures.headroom,
    )


def _facts(row: Row) -> ModelFacts:
    quantization = row.get("quantization_config")
    if quantization is None:
        return find_model(row["model"])
    profile = find_model_profile(row["model"])
    if profile is None:
        raise NotModelledError(f"{row['model']} is not bundled")
    source = Source(SourceKind.PROFILE, f"models/{profile.slug}")
    config = {**profile.config, "quantization_config": quantization}
    return model_facts(row["logged_model"], config, source=source)


def _figures(row: Row, facts: ModelFacts) -> InstanceFigures:
    gpu = accelerator(row)
    args = {k: v for k, v in row["engine_args"].items() if k not in DROPPED}
    args |= {k: v for k, v in row["resolved"].items() if v is not None}
    if str(args.get("kv_cache_dtype", "auto")).startswith("fp8"):
        args["kv_cache_dtype"] = "fp8"
    settings = resolve_settings(facts, load_engine(), gpu, args, allow_long=True).settings
    overheads = load_overheads(row["version"])
    return size_instance(facts, settings, accelerator=gpu, overheads=overheads)


def _share(ours: float, logged: float | None) -> float | None:
    return ours / logged - 1 if logged and logged > 0 else None


def _p90(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[-(-9 * len(ordered) // 10) - 1]


def _line(name: str, found: Iterable[Compared]) -> str:
    parts = []
    rows = list(found)
    for label in ("weights", "kv_cache", "tokens"):
        values = [abs(v) for c in rows if (v := getattr(c, label)) is not None]
        if values:
            parts.append(
                f"{label} {statistics.median(values):6.2%} / {_p90(values):6.2%} ({len(values)})"
            )
    return f"  {name:24} " + "   ".join(parts)


def summary(title: str, found: list[Compared]) -> dict[str, list[Compared]]:
    print(f"\n{title}: median / p90 of the share missed (logs)")
    groups: dict[str, list[Compared]] = defaultdict(list)
    for compared in found:
        if not compared.why:
            groups[f"trust {compared.row['trust']}"].append(compared)
            groups[f"trust {compared.row['trust']}, {family(compared.row)}"].append(compared)
    for name in sorted(groups):
        print(_line(name, groups[name]))
    reasons = Counter(c.why.partition(":")[0] for c in found if c.why)
    print(f"  not predicted: {dict(reasons) or 'none'}")
    return groups


def refusals(found: list[Compared]) -> list[Compared]:
    """Failed starts whose log prints figures; the ones we would let start."""
    kinds = ("kv_needed_gt_available", "no_available_memory", "max_num_seqs_gt_mamba_blocks")
    failed = [c for c in found if c.row.get("failure", {}).get("kind") in kinds]
    known = [c for c in failed if c.fits is not None]
    wrong = [c for c in known if c.fits]
    print(f"\nRefusals with printed figures: {len(failed)}, modelled {len(known)}")
    for c in failed:
        verdict = "CALLED FITS" if c.fits else "refused" if c.fits is False else c.why
        print(f"  {c.row['id'][:44]:44} {c.row['logged_model'][:40]:40} {verdict[:70]}")
    return wrong


def main() -> int:
    start = time.perf_counter()
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    logged, whole = [with_logged_weights(r) for r in rows], [whole_chain(r) for r in rows]
    print(
        f"{'log':46} {'trust':5} {'version':7}   {'KV GiB':>7} {'miss':>7}  chain: w / KV / tokens"
    )
    for one, two in zip(logged, whole, strict=True):
        if one.why and two.why:
            continue
        cache = one.row["logged_gib"].get("kv_cache")
        show = [
            f"{v:+.1%}" if v is not None else "-" for v in (two.weights, two.kv_cache, two.tokens)
        ]
        print(
            f"{one.row['id'][:46]:46} {one.row['trust']:5} {one.row['version'] or '-':7}"
            f" {'-' if cache is None else f'{cache:9.2f}'}"
            f" {'-' if one.kv_gib is None else f'{one.kv_gib:+.2f}':>7}  {' / '.join(show)}"
        )
    summary("Weights as logged", logged)
    groups = summary("Whole chain", whole)
    wrong = refusals(whole)
    trusted = groups["trust A"]
    weights = [abs(c.weights) for c in trusted if c.weights is not None]
    first = [abs(c.kv_cache) for c in logged if c.row["trust"] == "A" and c.kv_cache is not None]
    for name, values in (("weights as logged", first), ("whole chain", _of(trusted))):
        median, p90 = statistics.median(values), _p90(values)
        print(
            f"\nTrust A, {name}: KV median {median:.2%} (target {TARGETS['kv_median']:.0%}), "
            f"p90 {p90:.2%} (target {TARGETS['kv_p90']:.0%}), {len(values)} logs"
        )
    print(
        f"Trust A, weights: median {statistics.median(weights):.2%} "
        f"(target {TARGETS['weights']:.1%}), {len(weights)} logs\n"
        f"Refusals called fits: {len(wrong)} (target 0)\n"
        f"{len(rows)} logs in {time.perf_counter() - start:.1f} s"
    )
    return 0


def _of(found: list[Compared]) -> list[float]:
    return [abs(c.kv_cache) for c in found if c.kv_cache is not None]


if __name__ == "__main__":
    sys.exit(main())
