"""What transformers refuses in a config.json before vLLM sees it: nulls, and lists too short."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from vllm_advisor import resources
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.knowledge.profile_file import read_profile

_FIX = "leave the key out, or write what the checkpoint's own config.json says"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    source: str
    checked: tuple[str, ...]  # model types whose config class checks types
    keys: dict[str, tuple[str, ...]]  # key: model types that take no null for it


@cache
def _table() -> _File:
    return read_profile(resources.profiles("configs") / "nulls.yaml", _File)


def takes_null(model_type: str, key: str) -> bool:
    """Whether a config of this type may say null for a key, as far as is known."""
    table = _table()
    if key == "tie_word_embeddings":
        return model_type not in table.checked
    return model_type not in table.keys.get(key, ())


def check_types(part: dict[str, Any]) -> None:
    """Raise what transformers raises for config.json, or its text model's part.

    Source: transformers/configuration_utils.py#PreTrainedConfig, #validate_layer_type.

    Raises:
        InfeasibleError: the config's class refuses a value.
    """
    model_type = str(part.get("model_type"))
    nulls = [key for key, value in part.items() if value is None]
    refused = [key for key in nulls if not takes_null(model_type, key)]
    if refused:
        raise InfeasibleError(
            f"config.json says null for {', '.join(refused)}, which the config class of "
            f"{model_type} refuses",
            where="config.json",
            fix=_FIX,
        )
    types, count = part.get("layer_types"), part.get("num_hidden_layers")
    if model_type not in _table().checked or not isinstance(types, list) or count is None:
        return
    if len(types) != count:
        raise InfeasibleError(
            f"`num_hidden_layers` ({count}) must be equal to the number of `layer_types` "
            f"({len(types)})",
            where="config.json",
            fix="one entry of layer_types for each layer",
        )
