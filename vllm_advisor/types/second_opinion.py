"""A deployment put to another tool, and what that says of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One deployment under a closed loop, in the terms of vLLM.

    ``config`` is the model's config.json as it stands, ``quant_config`` its hf_quant_config.json
    where there is one. ``concurrency`` is of all data-parallel engines, None for an open loop.
    """

    config: dict[str, Any]
    quant_config: dict[str, Any] | None = None
    experts: bool
    gpu: str
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    expert_parallel: bool = False
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    max_num_seqs: int
    max_num_batched_tokens: int
    prompt: int
    output: int
    cached: int = 0
    concurrency: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """What another tool says: milliseconds and output tokens per second of the deployment.

    Without an answer the figures are None and ``reason`` says why. ``data`` is what its figures
    come from: it may be another version of vLLM than the one that was asked about.
    """

    tool: str
    version: str
    data: str = ""
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    output_tokens_per_second: float | None = None
    answered: bool = False
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
