"""The estimate as plain data, from words of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.arguments import read_words
from vllm_advisor.api.estimating import estimate
from vllm_advisor.knowledge.engines import load_engine

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration


def estimate_report(
    model: str,
    *,
    vllm_version: str | None,
    engine_args: dict[str, Any],
    words: Sequence[str] = (),
    calibration: Calibration | Sequence[Calibration] | None = None,
    trace: str | None = None,
    **load: Any,
) -> dict[str, Any]:
    """What :func:`~vllm_advisor.estimate` says, as plain data.

    Args:
        model: as in :func:`~vllm_advisor.estimate`.
        vllm_version: vLLM version.
        engine_args: vLLM's dest names.
        words: more of them, as ``NAME=VALUE``; they win.
        calibration: files of constants, as ``vllm-advisor calibrate`` writes them, or of memory,
            as ``vllm-advisor report`` does.
        trace: recorded traffic instead of lengths and a load; then as ``estimate_trace`` says.
        **load: GPU, lengths and load, as in :func:`~vllm_advisor.estimate`.
    """
    given = {**engine_args, **read_words(load_engine(vllm_version), words)}
    load["calibration"] = calibration
    if trace is None:
        return estimate(model, vllm_version=vllm_version, **load, **given).to_dict()
    from vllm_advisor.api.replaying import estimate_trace  # noqa: PLC0415 - seldom asked for

    return estimate_trace(model, trace, vllm_version=vllm_version, **load, **given).to_dict()
