"""Published measurements as observations of one engine, for the fit and for the benchmark.

A row is one point of somebody's benchmark (``tests/data/performance.jsonl``). Rows of one sweep are
near copies of each other, so nothing is held out but whole groups: a model in one format on one GPU
type with the same parallel sizes, from one source.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.engine_tables import known_versions
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.model_profiles import find_model_profile
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.instance import cache_layout, size_instance
from vllm_advisor.sizing.refit import Observation
from vllm_advisor.sizing.steady_state import Station, sequences_held
from vllm_advisor.sizing.step_work import step_work
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.second_opinion import Question
from vllm_advisor.types.source import Source, SourceKind

DATA = Path(__file__).parents[1] / "tests" / "data"
ROWS, FOLDS = DATA / "performance.jsonl", DATA / "latency_folds.json"
_LONGEST = 32_768  # of a benchmark's --max-model-len, which no row states
_UNSTATED = "0.19.0"  # the version most rows are of


@dataclass(frozen=True, slots=True)
class Row:
    """One point: ``entry`` as the file has it, ``observed`` as the fit takes it."""

    entry: dict[str, Any]
    observed: Observation

    @property
    def group(self) -> str:
        """What is held out together."""
        return group_of(self.entry)


def group_of(entry: dict[str, Any]) -> str:
    """Name of a row's group."""
    keys = ("stated_as", "gpu", "tensor_parallel_size", "data_parallel_size", "source")
    return " | ".join(str(entry[key]) for key in keys)


@cache
def read_rows() -> tuple[Row, ...]:
    """Rows of steady loads that are no outliers by physics, each weighted by its group's size."""
    entries = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    sound = [e for e in entries if not e.get("suspect")]
    sizes = Counter(group_of(e) for e in sound if e["load"] == "closed")
    return tuple(Row(e, _observed(e, sizes[group_of(e)] or 1)) for e in sound)


def _observed(entry: dict[str, Any], size: int) -> Observation:
    engines = entry["data_parallel_size"] * entry["replicas"]

    def seconds(name: str) -> float | None:
        return entry[name] / 1000 if name in entry else None

    def share(name: str) -> float | None:
        return entry[name] / engines if name in entry else None

    rate = share("requests_per_second") if entry["load"] == "open" else None
    return Observation(
        station=_station(entry),
        engines=engines,
        concurrency=share("concurrency") if rate is None else None,
        requests_per_second=rate,
        tpot=seconds("tpot_ms"),
        ttft=seconds("ttft_ms"),
        tokens_per_second=entry.get("output_tokens_per_second"),
        weight=size**-0.5,
        in_step=entry.get("fixed_lengths", False) and entry.get("concurrency", 1) > 1,
    )


def question_of(row: Row) -> Question:
    """The row for another tool: one of its replicas."""
    entry = row.entry
    profile = find_model_profile(entry["model"])
    if profile is None:
        raise ValueError(f"no profile {entry['model']}")
    work, seqs, tokens, layout, _ = _engine(_key(entry))
    return Question(
        config={**profile.config, **(entry.get("config") or {})},
        experts=work.experts > 0,
        gpu=entry["gpu"],
        tensor_parallel_size=entry["tensor_parallel_size"],
        data_parallel_size=entry["data_parallel_size"],
        expert_parallel=entry["engine_args"].get("enable_expert_parallel", False),
        kv_cache_dtype=layout.settings.cache_dtype,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        prompt=round(entry["prompt_tokens"]),
        output=round(entry["output_tokens"]),
        concurrency=entry["concurrency"] / entry["replicas"],
    )


def _key(entry: dict[str, Any]) -> str:
    """What tells the row's engine from others."""
    args = {"tensor_parallel_size": entry["tensor_parallel_size"], **entry["engine_args"]}
    if entry["data_parallel_size"] > 1:
        args["data_parallel_size"] = entry["data_parallel_size"]
    return json.dumps([entry[k] for k in ("model", "gpu", "version")] + [entry.get("config"), args])


def _station(entry: dict[str, Any]) -> Station:
    work, seqs, tokens, layout, blocks = _engine(_key(entry))
    return Station(
        work=work,
        constants=load_latency().constants,
        prompt=entry["prompt_tokens"],
        output=entry["output_tokens"],
        max_num_seqs=seqs,
        held=sequences_held(layout, blocks, entry["prompt_tokens"], entry["output_tokens"]),
        max_num_batched_tokens=tokens,
    )


@cache
def _engine(key: str) -> tuple[Any, ...]:
    """Work, sequences, tokens per step, cache layout and blocks of one engine."""
    name, gpu_name, version, config, args = json.loads(key)
    model, gpu = _facts(name, config or {}), find_gpu(gpu_name)
    engine = load_engine(_version(version))
    settings = resolve_settings(model, engine, gpu, args).settings
    settings = replace(settings, max_model_len=min(settings.max_model_len, _LONGEST))
    layout = cache_layout(model, settings)
    overheads = load_overheads(engine.version_used or engine.version)
    figures = size_instance(model, settings, accelerator=gpu, overheads=overheads, layout=layout)
    work = step_work(model, settings, gpu, layout)
    blocks = figures.capacity.num_gpu_blocks
    return work, settings.max_num_seqs, settings.max_num_batched_tokens, layout, blocks


def _facts(name: str, config: dict[str, Any]) -> ModelFacts:
    profile = find_model_profile(name)
    if profile is None:
        raise ValueError(f"no profile {name}")
    source = Source(SourceKind.PROFILE, f"models/{name}")
    merged = {**profile.config, **config}
    return model_facts(profile.model_id, merged, source=source, serving=profile.serving)


def _version(stated: str | None) -> str:
    """The release if it is known; else the oldest for older ones, and the usual one otherwise."""
    try:
        return load_engine(stated).version if stated else _UNSTATED
    except AdvisorError:
        return known_versions()[0] if stated and stated[0] == "0" else _UNSTATED
