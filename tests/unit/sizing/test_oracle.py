"""Sizing against what vLLM 0.33.0's own code answered: block for block, token for token.

Rows whose architecture is not modelled have to be refused, never answered.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.errors import NotModelledError, UnknownFactError
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import KVCacheSettings
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source, SourceKind

DATA = Path(__file__).parents[2] / "data"
ROWS = [json.loads(line) for line in (DATA / "oracle.jsonl").read_text().splitlines()]
CONFIGS = json.loads((DATA / "oracle_configs.json").read_text())
MODELLED_SPECS = {
    "FullAttentionSpec",
    "SlidingWindowSpec",
    "ChunkedLocalAttentionSpec",
    "MLAAttentionSpec",
}
# The rows are about arguments that this sizing does not take (FP32 weights, forced block counts,
# the window switched off): nothing to compare.
OTHER_ARGUMENTS = {"neg:blocks-override", "neg:fp32", "neg:nosw"}
# The first config leaves q_lora_rank out, and transformers then takes 1536; the checkpoint has
# none. The second names no quant_method, so vLLM counted it in 16 bits.
NOT_THE_CHECKPOINT = {"DeepSeek-V2-Lite", "Qwen3-32B-FP8-Static-PerTensor"}


@cache
def facts(name: str) -> ModelFacts | None:
    entry = CONFIGS[name]
    try:
        return model_facts(
            name,
            entry["config"],
            source=Source(SourceKind.LOCAL, name),
            hf_quant_config=entry.get("hf_quant_config"),
        )
    except (NotModelledError, UnknownFactError):
        return None


def layout(row: dict[str, Any], model: ModelFacts) -> CacheLayout:
    key, resolved = row["key"], row["resolved"]
    return CacheLayout(
        model.kv_cache,
        KVCacheSettings(
            cache_dtype=resolved["cache_dtype"],
            model_dtype_bytes=2,
            block_size=row["block_size"],
            max_model_len=resolved["max_model_len"],
            in_flight_tokens=resolved["max_in_flight_tokens"],
            tensor_parallel_size=key["tp"],
            pipeline_parallel_size=key["pp"],
            decode_context_parallel_size=key["dcp"],
            hybrid_manager=not resolved["disable_hybrid_kv_cache_manager"],
        ),
    )


def comparable(row: dict[str, Any]) -> bool:
    plain = row["ok"] and row["tag"] not in OTHER_ARGUMENTS
    auto = plain and row["resolved"]["original_max_model_len"] == -1
    return plain and not auto and facts(row["model"]) is not None


def rows() -> list[Any]:
    return [
        pytest.param(row, id=f"{row['model']}-{row['gpu']}-{row['tag']}-{number}")
        for number, row in enumerate(ROWS)
        if comparable(row)
    ]


@pytest.mark.parametrize("row", rows())
def test_capacity_is_vllms(row: dict[str, Any]) -> None:
    model = facts(row["model"])
    assert model is not None
    try:
        cache = layout(row, model)
    except NotModelledError:
        assert row["resolved"]["cache_dtype"].startswith(("int", "fp8_per", "nvfp4", "turbo"))
        return
    for run in row["runs"]:
        found = cache.capacity(run["available"])
        if run.get("refused"):
            assert not found.fits
            if run["estimated_max_model_len"] is not None:
                assert found.estimated_max_model_len == run["estimated_max_model_len"]
            continue
        assert found.fits
        assert found.num_gpu_blocks == run["num_blocks"]
        assert found.tokens == run["tokens"]
        assert found.max_concurrency == pytest.approx(run["concurrency"], rel=1e-12)


def test_enough_is_compared() -> None:
    """The comparison must not shrink unseen: settings and capacity results that take part."""
    taking_part = [row for row in ROWS if comparable(row)]
    assert len(taking_part) >= 350
    assert sum(len(row["runs"]) for row in taking_part) >= 900
    assert len(weight_rows()) >= 230


def weight_rows() -> list[Any]:
    out = []
    for number, row in enumerate(ROWS):
        if not comparable(row) or row["model"] in NOT_THE_CHECKPOINT:
            continue
        key, config = row["key"], CONFIGS[row["model"]]["config"]
        plain = key["dp"] == 1 and not key["ep"] and "quantization" not in row["engine_args"]
        model = facts(row["model"])
        # Vision towers are known from checkpoints, not from configs; FP4 kernels of other GPUs
        # pad otherwise.
        vision = "vision_config" in config or (model and model.multimodal)
        vision = vision or config["architectures"][0].endswith("ForConditionalGeneration")
        padded = model and model.quantization and model.quantization.bits == 4
        if not plain or vision or (padded and row["gpu"] != "h100"):
            continue
        out.append(pytest.param(row, id=f"{row['model']}-{row['gpu']}-{row['tag']}-{number}"))
    return out


@pytest.mark.parametrize("row", weight_rows())
def test_weights_of_the_fullest_rank(row: dict[str, Any]) -> None:
    """Within 0.2 % of the bytes vLLM allocates: scales of FP8 blocks and padding are the rest."""
    model = facts(row["model"])
    assert model is not None
    found = weight_bytes(
        model,
        tensor_parallel_size=row["key"]["tp"],
        pipeline_parallel_size=row["key"]["pp"],
    )
    # vLLM's count was taken before MLA's absorbed copies are made.
    absorbed = [c for c in model.weights.components if c.name == "mla_absorbed"]
    per_stage = -(-model.num_hidden_layers // row["key"]["pp"])
    extra = sum(c.params // row["key"]["tp"] * 2 * per_stage for c in absorbed)
    assert found.rank_bytes - extra == pytest.approx(max(row["weights"]), rel=0.002)


@pytest.mark.parametrize(
    "name", sorted({r["model"] for r in ROWS if set(r.get("specs", ())) - MODELLED_SPECS})
)
def test_what_is_not_modelled_is_refused(name: str) -> None:
    assert facts(name) is None
