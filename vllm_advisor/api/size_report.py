"""The size report as plain data, with what is asked for beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.arguments import read_words
from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.sizing import size
from vllm_advisor.knowledge.engines import load_engine

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration


def size_report(
    model: str,
    *,
    gpu: str | None,
    gpu_count: int,
    vllm_version: str | None,
    engine_args: dict[str, Any],
    words: Sequence[str] = (),
    calibration: Calibration | Sequence[Calibration] | None = None,
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
        words: more of them, as ``NAME=VALUE``; they win.
        calibration: as in :func:`vllm_advisor.size`.
        training: (batch size, sequence length) to add full training by component.
        retention: add what each retention policy keeps of a prompt of max_model_len.
        attention_cost: add prefill cost at max_model_len against 4K.
    """
    engine_args = {**engine_args, **read_words(load_engine(vllm_version), words)}
    report = size(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        calibration=calibration,
        **engine_args,
    )
    data = report.to_dict()
    if training is None and not retention and not attention_cost:
        return data
    from vllm_advisor.api import size_extras  # noqa: PLC0415 - seldom asked for, slow to import

    facts, length = served_model(find_model(model), engine_args), report.settings.max_model_len
    if training is not None:
        data["training"] = size_extras.training_rows(facts, *training)
        data["assumptions"].append(size_extras.TRAINING_NOTE)
    if retention:
        per_token = report.figures.capacity.bytes_per_token
        if per_token is None:
            per_token = report.figures.capacity.request_bytes // length
        data["retention"] = size_extras.retention_rows(facts, length, per_token)
    if attention_cost:
        data["attention_cost"] = size_extras.attention_rows(facts, length)
    return data
