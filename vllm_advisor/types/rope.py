"""How a model encodes positions, and how long a table vLLM keeps for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

ROPE_TABLE = "rope_table"  # the components that hold cosines and sines of positions


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeFacts:
    """Position encoding: ``rope_parameters`` (or the older ``rope_scaling``) of the config."""

    rope_type: str = "default"
    factor: float = 1.0
    original_max_position_embeddings: int | None = None
    theta: float | None = None

    def table_rows(self, longest: int) -> int:
        """Positions of the table of cosines and sines, for ``max_position_embeddings``.

        Source: vllm/model_executor/layers/rotary_embedding/__init__.py#get_rope and the classes
        it builds.
        """
        original = self.original_max_position_embeddings or longest
        if self.rope_type in ("yarn", "deepseek_yarn", "deepseek_llama_scaling"):
            return math.ceil(original * self.factor)
        if self.rope_type == "linear":
            return math.ceil(longest * self.factor)
        if self.rope_type in ("longrope", "su"):  # the short one before the long one
            return original + longest
        return longest
