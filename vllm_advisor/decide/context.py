"""max_model_len, and the stretch beyond the model's native length where one is documented."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from vllm_advisor.decide.demand import Demand
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.units import format_tokens, round_up

_GRAIN = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The length one instance serves; ``hf_overrides`` is set when YaRN is needed."""

    max_model_len: int
    longest_class: str
    needed: int
    hf_overrides: dict[str, Any] | None = None
    max_position_embeddings: int | None = None
    yarn_factor: float | None = None


def context_for(demands: tuple[Demand, ...], model: ModelFacts) -> Context:
    """The context an instance needs: its longest class, rounded up to 1,024 tokens.

    Raises:
        InfeasibleError: the model cannot be stretched so far.
    """
    longest = max(demands, key=lambda d: d.max_tokens)
    needed = longest.max_tokens
    native = derived_max_model_len(model)
    if needed <= native:
        return Context(
            max_model_len=min(round_up(needed, _GRAIN), native),
            longest_class=longest.request.name,
            needed=needed,
        )
    return _yarn(model, longest, needed, native)


def _yarn(model: ModelFacts, longest: Demand, needed: int, native: int) -> Context:
    limit = model.serving.yarn_factor
    original = model.rope.original_max_position_embeddings or model.serving.yarn_original
    reach = int(limit * original) if limit and original else native
    if limit is None or original is None or needed > reach or model.rope.theta is None:
        raise InfeasibleError(
            f"class {longest.request.name} needs {format_tokens(needed)} tokens, "
            f"{model.model_id} reads {format_tokens(reach)} at most "
            + (f"(with YaRN x{limit:g})" if limit else "(no YaRN factor is documented for it)"),
            where=longest.request.where,
            fix="choose a model with a longer context, answer it by retrieval (needs: lookup with "
            "rag.available), or bound the history (needs: recent_only)",
        )
    # Whole factors keep the stretched length a multiple of the trained one.
    factor = float(max(2, math.ceil(needed / original)))
    length = int(original * factor)
    # vLLM does not multiply the YaRN factor into the derived limit, so the length has to be
    # overridden as well (vllm/config/model.py#_get_and_verify_max_len).
    overrides: dict[str, Any] = {
        "max_position_embeddings": length,
        "rope_parameters": {
            "factor": factor,
            "original_max_position_embeddings": original,
            "rope_theta": model.rope.theta,
            "rope_type": "yarn",
        },
    }
    if model.text_config_key:
        overrides = {model.text_config_key: overrides}
    return Context(
        max_model_len=min(round_up(needed, _GRAIN), length),
        longest_class=longest.request.name,
        needed=needed,
        hf_overrides=overrides,
        max_position_embeddings=length,
        yarn_factor=factor,
    )
