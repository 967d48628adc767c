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
from oracle_rows import CONFIGS, NOT_MODELLED, ROWS, resolved

from vllm_advisor.api.runner import served_model
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.budget import instance_weights
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Confidence, Source, SourceKind

DATA = Path(__file__).parents[2] / "data"
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
    return before_loading(model)


def before_loading(model: ModelFacts) -> ModelFacts:
    parts = tuple(c for c in model.weights.components if not c.after_loading)
    return replace(model, weights=replace(model.weights, components=parts))


def settings_of(row: dict[str, Any], model: ModelFacts) -> InstanceSettings:
    """The row's settings; a draft as the harness holds it, before anything is transformed."""
    settings = resolved(row, model)[1].settings
    speculation = settings.speculation
    if speculation is None or speculation.draft is None:
        return settings
    draft = before_loading(speculation.draft)
    draft = replace(draft, weights=replace(draft.weights, checkpoint_bytes=None))
    return replace(settings, speculation=replace(speculation, draft=draft))


def of_the_fullest(row: dict[str, Any]) -> int:
    """vLLM's bytes of the fullest stage: less what is offloaded, the last with its draft."""
    saved = row.get("offloaded") or [0] * len(row["weights"])
    *others, last = (held - gone for held, gone in zip(row["weights"], saved, strict=True))
    return max([*others, last + row.get("drafter", {}).get("param_bytes", 0)])


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
            json.dumps([r["key"], r["gpu"], r["weights"], r.get("drafter"), r.get("offloaded")]): r
            for r in rows
        }.values()
    )


@pytest.mark.parametrize("name", sorted({row["model"] for row in taking_part()}))
def test_weights_of_the_fullest_rank(name: str) -> None:
    model = facts(name)
    for row in of_one_model(name):
        found = instance_weights(
            served_model(model, row["engine_args"]), settings_of(row, model), loaded=False
        )
        expected = of_the_fullest(row)
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
