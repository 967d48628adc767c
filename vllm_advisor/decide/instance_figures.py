"""The figures of a chosen instance: budget, cache and demand, each with its formula."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.reasons import formula, user, vllm
from vllm_advisor.decide.search import Search
from vllm_advisor.decide.speed_figures import speed_figures
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source


def instance_figures(name: str, search: Search, chosen: Candidate) -> tuple[Figure, ...]:
    """All figures of one instance, ids prefixed with its name."""
    if chosen.figures is None:
        return ()
    capacity = chosen.figures.capacity
    planning = vllm("0.33.0:vllm/v1/core/kv_cache_utils.py#get_kv_cache_capacity")
    out = [
        replace(f, id=f"{name}.{f.id}", inputs=tuple(f"{name}.{i}" for i in f.inputs))
        for f in chosen.figures.figures
    ]

    def add(key: str, value: float, unit: str, text: str, source: Source, *inputs: str) -> None:
        out.append(
            Figure(
                id=f"{name}.{key}",
                value=value,
                unit=unit,
                formula=text,
                source=source,
                inputs=tuple(f"{name}.{i}" for i in inputs),
            )
        )

    add(
        "kv.request_bytes",
        capacity.request_bytes,
        "bytes",
        f"{capacity.blocks_per_request} blocks x {capacity.bytes_per_block} B for "
        f"{capacity.max_model_len} tokens, per GPU",
        formula("kv-cache-request"),
    )
    if capacity.bytes_per_token is not None:
        add(
            "kv.bytes_per_token",
            capacity.bytes_per_token,
            "bytes",
            "sum over layers of heads x (head_size + head_size_v) x element bytes, per GPU",
            formula("kv-cache-token"),
        )
    add(
        "kv.blocks",
        capacity.num_gpu_blocks,
        "blocks",
        f"floor(KV cache bytes / {capacity.bytes_per_block})",
        planning,
        "memory.kv_cache",
    )
    add(
        "kv.tokens",
        capacity.tokens,
        "tokens",
        f"int(blocks / {capacity.blocks_per_request} x {capacity.max_model_len})",
        planning,
        "kv.blocks",
    )
    add(
        "kv.max_concurrency",
        round(capacity.max_concurrency, 2),
        "requests",
        f"blocks / {capacity.blocks_per_request}: requests of max_model_len at once",
        planning,
        "kv.blocks",
    )
    if chosen.figures.engines > 1:
        add(
            "kv.total_concurrency",
            round(chosen.figures.total_concurrency, 2),
            "requests",
            f"kv.max_concurrency x {chosen.figures.engines} engines, each with its own cache",
            planning,
            "kv.max_concurrency",
        )
    add(
        "kv.blocks_needed",
        chosen.needed_blocks,
        "blocks",
        "1 + sum over classes of shared prefix + concurrency x (request at p95 - shared prefix), "
        f"one {'replica' if chosen.figures.engines == 1 else 'engine'}'s share",
        formula("replicas-from-concurrency"),
    )
    add(
        "weights.checkpoint",
        weight_bytes(search.setting.model).total_bytes,
        "bytes",
        "size of the checkpoint's files; of all weights in its dtype where that is not known",
        search.setting.model.weights.source,
    )
    for demand in chosen.demands or search.demands:
        add(
            f"concurrency.{demand.request.name}",
            demand.concurrency,
            "requests",
            demand.concurrency_formula,
            user(demand.request.where) if demand.request.where else formula("littles-law"),
        )
    return (*out, *speed_figures(name, chosen, search.setting))
