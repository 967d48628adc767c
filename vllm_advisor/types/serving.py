"""What a model's publisher and its recipe say about serving it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vllm_advisor.types.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingVariant:
    """A published quantized checkpoint of the same model."""

    name: str
    model_id: str
    precision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """Verified flags for serving this model: what its recipe says.

    ``features`` maps a feature (``tool_calling``, ``reasoning``, ``text_only``) to flags by dest,
    ``hardware_args`` a family of GPUs (``hopper``, ``blackwell``) to those it adds there.
    """

    min_vllm_version: str | None = None
    base_args: dict[str, Any] = field(default_factory=dict)
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    hardware_args: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: tuple[ServingVariant, ...] = ()
    yarn_factor: float | None = None  # largest YaRN factor the publisher documents
    yarn_original: int | None = None  # ... over this many trained positions
    source: Source | None = None
    context_source: Source | None = None
