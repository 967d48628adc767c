"""What ``size`` adds on request: training memory, retention policies, cost of attention."""

from __future__ import annotations

from typing import Any

from vllm_advisor.sizing.attention_cost import attention_cost_ratio, prefill_flops
from vllm_advisor.sizing.retention import (
    Full,
    HeavyHitters,
    Retention,
    SinksAndWindow,
    SlidingWindow,
    compare,
)
from vllm_advisor.sizing.training import (
    DOCUMENT_TABLE,
    MIXED_PRECISION,
    WHY_NOT_TWENTY_BYTES,
    TrainingSetup,
    training_memory_of,
)
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import Figure
from vllm_advisor.units import format_bytes

TRAINING_NOTE = WHY_NOT_TWENTY_BYTES
_SHORT = 4096
_POLICIES = (
    Full(),
    SlidingWindow(window=8192),
    SinksAndWindow(sinks=4, window=8192),
    HeavyHitters(budget=8192, recent=2048),
)


def training_rows(facts: ModelFacts, batch_size: int, sequence_length: int) -> list[dict[str, Any]]:
    """Memory of full training by component, in each of two conventions."""
    rows = []
    for convention in (DOCUMENT_TABLE, MIXED_PRECISION):
        memory = training_memory_of(
            facts,
            TrainingSetup(
                batch_size=batch_size, sequence_length=sequence_length, convention=convention
            ),
        )
        figures: tuple[Figure, ...] = (*memory.model_states, *memory.activations)
        rows += [
            {
                "convention": convention.name,
                "component": f.id,
                "bytes": int(f.value),
                "size": format_bytes(int(f.value)),
                "formula": f.formula,
            }
            for f in figures
        ]
        total = memory.total
        rows.append(
            {
                "convention": convention.name,
                "component": "total",
                "bytes": total,
                "size": format_bytes(total),
                "formula": "sum of the above",
            }
        )
    return rows


def retention_rows(facts: ModelFacts, length: int, per_token: int) -> list[dict[str, Any]]:
    """What each policy keeps of a prompt of ``length`` tokens of ``per_token`` bytes each."""
    layers = facts.num_hidden_layers
    return [_retention(r) for r in compare(_POLICIES, length, per_token, num_layers=layers)]


def _retention(one: Retention) -> dict[str, Any]:
    support = one.policy.vllm
    return {
        "policy": one.policy.name,
        "kept_tokens": one.tokens,
        "bytes": one.bytes,
        "size": format_bytes(one.bytes),
        **{f"needle_at_{n.percent}": n.visibility.value for n in one.needles},
        "vllm": support.how,
        "nearest": support.nearest,
    }


def attention_rows(facts: ModelFacts, length: int) -> list[dict[str, Any]]:
    """Operations of attention and of the linear layers, at a short length and at ``length``."""
    rows: list[dict[str, Any]] = []
    for tokens in (_SHORT, length):
        flops = prefill_flops(facts, tokens)
        rows.append(
            {
                "tokens": tokens,
                "attention_flops": int(flops.attention.value),
                "linear_flops": int(flops.linear.value),
                "attention_share": round(flops.attention_share, 4),
            }
        )
    ratio = attention_cost_ratio(length, _SHORT)
    rows.append(
        {
            "tokens": f"{length} / {_SHORT}",
            "attention_flops": f"x {float(ratio.causal):.1f} "
            f"(full square: {float(ratio.quadratic):.0f})",
            "linear_flops": f"x {length / _SHORT:.1f}",
            "attention_share": "",
        }
    )
    return rows
