"""What vLLM's own code answered (tests/data/oracle.jsonl), row by row against this package."""

from __future__ import annotations

import json
import lzma
import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vllm_advisor.api.runner import served_model
from vllm_advisor.api.settings import Resolved, resolve_settings
from vllm_advisor.api.sizing import GPUS_OF_ONE_NODE
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.parallelism import check_one_node, check_settings
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind

DATA = Path(__file__).parents[1] / "tests" / "data"
ROWS = [json.loads(line) for line in (DATA / "oracle.jsonl").read_text("utf-8").splitlines()]
CONFIGS = json.loads(lzma.decompress((DATA / "oracle_configs.full.json.xz").read_bytes()))
_DRAFTS = TemporaryDirectory(prefix="drafts-")
GPUS = {"h100": "h100-sxm", "b200": "b200", "a100": "a100-sxm4-80", "l40s": "l40s", "t4": "t4"}
# Arguments that are said to be not modelled; what vLLM answered with them is never guessed.
NOT_MODELLED = {
    "neg:q-fp8_per_block": "online quantization",
    "neg:q-mxfp8": "online quantization",
}
NO_LMCACHE = "neg:lmcache"  # refused because a package was not installed where vLLM was asked
_SPARSE = {"FLASHMLA_SPARSE", "FLASH_ATTN_MLA_SPARSE"}  # the choice between them is by head count


def name_of(row: dict[str, Any]) -> str:
    """Model, GPU and setting."""
    return f"{row['model']}-{row['gpu']}-{row['tag']}"


def answered(row: dict[str, Any]) -> bool:
    """vLLM started, if only with more memory: rows without any such answer are refusals."""
    return row["ok"] and any(
        r.get("needed_gib") is not None or not r.get("refused") for r in row["runs"]
    )


@cache
def draft_folder(name: str) -> str:
    """A folder with the config of a draft model of the table: drafts are named by path or id."""
    folder = Path(_DRAFTS.name) / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]["config"]), "utf-8")
    return str(folder)


def arguments(row: dict[str, Any]) -> dict[str, Any]:
    """The row's engine arguments, with the draft it names as a folder."""
    given: dict[str, Any] = row["engine_args"]
    speculative = given.get("speculative_config") or {}
    if speculative.get("model") not in CONFIGS:
        return given
    model = draft_folder(speculative["model"])
    return {**given, "speculative_config": {**speculative, "model": model}}


@cache
def facts(name: str) -> ModelFacts:
    """A model of the table."""
    entry = CONFIGS[name]
    return model_facts(
        name,
        entry["config"],
        source=Source(SourceKind.LOCAL, name),
        checkpoint_bytes=1,  # weights are not the question here
        hf_quant_config=entry.get("hf_quant_config"),
    )


def resolved(row: dict[str, Any], loaded: ModelFacts | None = None) -> tuple[ModelFacts, Resolved]:
    """The row's model (``loaded``, if it is known already) and its settings with every default."""
    model = served_model(loaded or facts(row["model"]), row["engine_args"])
    found = resolve_settings(
        model,
        load_engine("0.33.0"),
        find_gpu(GPUS[row["gpu"]]),
        arguments(row),
        allow_long=row["tag"].endswith("-allow"),  # asked with VLLM_ALLOW_LONG_MAX_MODEL_LEN=1
    )
    return model, found


def lay_out(row: dict[str, Any]) -> tuple[Resolved, CacheLayout]:
    """Settings and cache groups of a row; raises what vLLM refuses."""
    model, found = resolved(row)
    settings = found.settings
    check_settings(model, settings)
    spread = row["engine_args"].get("nnodes", 1) > 1
    check_one_node(settings.ranks, GPUS_OF_ONE_NODE, spread=spread)
    return found, cache_layout(model, settings)


def differences(row: dict[str, Any]) -> list[str]:
    """What is not equal between a row that vLLM answered and this package."""
    found, layout = lay_out(row)
    settings, theirs = found.settings, row["resolved"]
    pairs = {
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "max_num_seqs": settings.max_num_seqs,
        "max_in_flight_tokens": settings.in_flight_tokens,
    }
    if not found.auto_max_model_len:
        pairs["max_model_len"] = settings.max_model_len
    wrong = [f"{k} {v}, not {theirs[k]}" for k, v in pairs.items() if v != theirs[k]]
    if layout.block_size != row["block_size"]:
        wrong.append(f"block size {layout.block_size}, not {row['block_size']}")
    names = {b.removesuffix("_FA4") for b in row["backends"]}  # a variant for few heads per rank
    backend = settings.attention_backend
    if backend not in names and not {backend, *names} >= _SPARSE:
        wrong.append(f"backend {backend}, not {names}")
    for run in row["runs"]:
        wrong += _run(run, found, layout)
    return wrong


def _run(run: dict[str, Any], found: Resolved, layout: CacheLayout) -> list[str]:
    settings, available = found.settings, run["available"]
    if settings.num_gpu_blocks_override is not None:
        available = settings.num_gpu_blocks_override * layout.block_bytes
    if found.auto_max_model_len:
        longest = layout.longest(available, settings.max_model_len)
        same = longest == 0 if run.get("refused") else longest == run["max_model_len"]
        return [] if same else [f"longest {longest}, not {run.get('max_model_len')}"]
    capacity = layout.capacity(available)
    if capacity.fits is bool(run.get("refused")):
        return [f"fits {capacity.fits} in {available}"]
    if run.get("refused"):
        longest, needed = run["estimated_max_model_len"], run["needed_gib"]
        wrong = []
        if longest is not None and capacity.estimated_max_model_len != longest:
            wrong.append(f"estimated length {capacity.estimated_max_model_len}, not {longest}")
        ours = capacity.request_bytes / (1 << 30)
        if needed is not None and not math.isclose(ours, needed, abs_tol=0.006):
            wrong.append(f"needed {ours:.2f} GiB, not {needed}")
        return wrong
    ours = (capacity.num_gpu_blocks, capacity.tokens)
    if ours != (run["num_blocks"], run["tokens"] or 0):
        return [f"blocks and tokens {ours}, not {run['num_blocks'], run['tokens']}"]
    if not math.isclose(capacity.max_concurrency, run["concurrency"] or 0, rel_tol=1e-12):
        return [f"concurrency {capacity.max_concurrency}, not {run['concurrency']}"]
    return []
