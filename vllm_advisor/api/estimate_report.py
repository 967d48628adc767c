"""The estimate as plain data, from words of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vllm_advisor.api.arguments import read_words
from vllm_advisor.api.estimating import estimate
from vllm_advisor.knowledge.engines import load_engine


def estimate_report(
    model: str,
    *,
    vllm_version: str | None,
    engine_args: dict[str, Any],
    words: Sequence[str] = (),
    calibration: str | Path | None = None,
    trace: str | None = None,
    **load: Any,
) -> dict[str, Any]:
    """What :func:`~vllm_advisor.estimate` says, as plain data.

    Args:
        model: as in :func:`~vllm_advisor.estimate`.
        vllm_version: vLLM version.
        engine_args: vLLM's dest names.
        words: more of them, as ``NAME=VALUE``; they win.
        calibration: a file of constants, as ``vllm-advisor calibrate`` writes it.
        trace: recorded traffic instead of lengths and a load; then as ``estimate_trace`` says.
        **load: GPU, lengths and load, as in :func:`~vllm_advisor.estimate`.
    """
    given = {**engine_args, **read_words(load_engine(vllm_version), words)}
    if calibration is not None:
        from vllm_advisor.knowledge.calibration_file import read_calibration  # noqa: PLC0415

        load["fit"] = read_calibration(calibration)
    if trace is None:
        return estimate(model, vllm_version=vllm_version, **load, **given).to_dict()
    from vllm_advisor.api.replaying import estimate_trace  # noqa: PLC0415 - seldom asked for

    return estimate_trace(model, trace, vllm_version=vllm_version, **load, **given).to_dict()
