"""Speculative decoding of one instance: who drafts, how many tokens, and what that keeps."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.model import ModelFacts, WeightComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """``--speculative-config``, resolved.

    ``draft`` is the model that drafts, with its own layers and without what it shares with the
    target; ``None`` where tokens are proposed without a model (n-grams, suffixes). It runs on the
    last pipeline stage, where ``copies`` are held, too, once there are several stages.
    ``lookahead_tokens`` are slots that a draft writes ahead. ``single_stage`` says why there may be
    no other stage; empty where there may.
    """

    method: str
    num_speculative_tokens: int
    draft: ModelFacts | None = None
    copies: tuple[WeightComponent, ...] = ()
    lookahead_tokens: int = 0
    single_stage: str = ""
    samples_drafts: bool = False  # draft_sample_method: probabilistic
