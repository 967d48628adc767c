"""What ``size`` adds on request: training memory, retention policies, cost of attention."""

from __future__ import annotations

from typing import Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.sizing import size
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

_SHORT = 4096
_POLICIES = (
    Full(),
    SlidingWindow(window=8192),
    SinksAndWindow(sinks=4, window=8192),
    HeavyHitters(budget=8192, recent=2048),
)


def size_report(
    model: str,
    *,
    gpu: str | None,
    gpu_count: int,
    vllm_version: str | None,
    engine_args: dict[str, Any],
    training: tuple[int, int] | None = None,
    retention: bool = False,
    attention_cost: bool = False,
) -> dict[str, Any]:
    """The size report as plain data, with what was asked for beside it.

    Args:
        model: as in :func:`vllm_advisor.size`.
        gpu: GPU profile or NVML name.
        gpu_count: GPUs of one node.
        vllm_version: vLLM version.
        engine_args: vLLM's dest names.
        training: (batch size, sequence length) to add full training by component.
        retention: add what each retention policy keeps of a prompt of max_model_len.
        attention_cost: add prefill cost at max_model_len against 4K.
    """
    report = size(model, gpu=gpu, gpu_count=gpu_count, vllm_version=vllm_version, **engine_args)
    data = report.to_dict()
    facts, length = served_model(find_model(model), engine_args), report.settings.max_model_len
    if training is not None:
        data["training"] = _training(facts, *training)
        data["assumptions"].append(WHY_NOT_TWENTY_BYTES)
    if retention:
        per_token = report.figures.capacity.bytes_per_token
        if per_token is None:
            per_token = report.figures.capacity.request_bytes // length
        data["retention"] = [
            _retention(r)
            for r in compare(_POLICIES, length, per_token, num_layers=facts.num_hidden_layers)
        ]
    if attention_cost:
        data["attention_cost"] = _attention(facts, length)
    return data


def _training(facts: ModelFacts, batch_size: int, sequence_length: int) -> list[dict[str, Any]]:
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


def _attention(facts: ModelFacts, length: int) -> list[dict[str, Any]]:
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
