"""Weights against what vLLM 0.33.0's own code allocates, stage by stage, for every row of the table.

vLLM counted before loading: MLA's absorbed copies do not exist yet, and FP8 and NVFP4 layers hold
single scales that loading drops or that are too small to count (a few bytes for each matrix).
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from oracle_rows import CONFIGS, GPUS, NOT_MODELLED, ROWS

from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.budget import instance_weights
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Confidence, Source, SourceKind

DATA = Path(__file__).parents[2] / "data"
ENGINE = load_engine("0.33.0")
# Per-tensor scales: 8 to 16 bytes for a matrix of megabytes.
SINGLE_SCALES = 1e-4
# Rows about something else, and configs that vLLM read otherwise than the checkpoint is.
OTHER_QUESTIONS = {"neg:fp32": "weights in FP32 are refused"}
OTHER_CONFIGS = {
    "DeepSeek-V2-Lite": "the config leaves q_lora_rank out, and transformers fills in 1536",
    "Qwen3-32B-FP8-Static-PerTensor": "names no quant_method, so vLLM counted 16 bits",
}


@cache
def facts(name: str) -> ModelFacts:
    entry = CONFIGS[name]
    model = model_facts(
        name,
        entry["config"],
        source=Source(SourceKind.LOCAL, name),
        hf_quant_config=entry.get("hf_quant_config"),
    )
    parts = tuple(c for c in model.weights.components if c.name != "mla_absorbed")
    return replace(model, weights=replace(model.weights, components=parts))


def taking_part() -> list[dict[str, Any]]:
    return [
        row
        for row in ROWS
        if row["ok"]
        and row["tag"] not in {*OTHER_QUESTIONS, *NOT_MODELLED}
        and row["model"] not in OTHER_CONFIGS
        # Quantized while loading, which vLLM's count does not see.
        and "quantization" not in row["engine_args"]
    ]


def of_one_model(name: str) -> list[dict[str, Any]]:
    rows = [row for row in taking_part() if row["model"] == name]
    return list(
        {
            json.dumps([r["key"], r["gpu"], r["weights"], r.get("offloaded")]): r for r in rows
        }.values()
    )


@pytest.mark.parametrize("name", sorted({row["model"] for row in taking_part()}))
def test_weights_of_the_fullest_rank(name: str) -> None:
    model = facts(name)
    for row in of_one_model(name):
        settings = resolve_settings(
            model, ENGINE, find_gpu(GPUS[row["gpu"]]), row["engine_args"], allow_long=True
        ).settings
        found = instance_weights(model, settings)
        saved = row.get("offloaded") or [0] * len(row["weights"])
        expected = max(held - gone for held, gone in zip(row["weights"], saved, strict=True))
        if model.quantization is None:
            assert found.rank_bytes == expected, row["tag"]
        else:
            assert found.rank_bytes == pytest.approx(expected, rel=SINGLE_SCALES), row["tag"]


def test_enough_is_compared() -> None:
    """The comparison must not shrink unseen."""
    rows = taking_part()
    assert len(rows) >= 500
    assert len({row["model"] for row in rows}) >= 104
    assert sum(row["key"]["ep"] for row in rows) >= 8
    assert sum(row["key"]["pp"] > 1 for row in rows) >= 25


def test_no_row_is_a_guess() -> None:
    """What is compared is known from its config: nothing lowers its confidence."""
    for name in {row["model"] for row in taking_part()}:
        notes = [a.id for a in facts(name).assumptions if a.lowers_to is Confidence.LOW]
        assert notes == [], name
