"""What transformers makes of a config.json before vLLM sees it: refusals, and what it fills in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from vllm_advisor import resources
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.knowledge.profile_file import read_profile

_FIX = "leave the key out, or write what the checkpoint's own config.json says"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    source: str
    checked: tuple[str, ...]  # model types whose config class checks types
    keys: dict[str, tuple[str, ...]]  # key: model types that take no null for it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defaults:
    source: str
    defaults: dict[str, dict[str, Any]]  # model type: key: value


@cache
def _defaults() -> _Defaults:
    return read_profile(resources.profiles("configs") / "defaults.yaml", _Defaults)


@cache
def _table() -> _File:
    return read_profile(resources.profiles("configs") / "nulls.yaml", _File)


@contextmanager
def reading(model_id: str) -> Iterator[None]:
    """Whatever shape a value of a config.json has, what comes of it is an error with its name.

    Raises:
        InputError: a value is none that can be read.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"config.json of {model_id} has a value that cannot be used: "
            f"{type(error).__name__}: {error}"[:300],
            where="config.json",
            fix=_FIX,
        ) from error


def takes_null(model_type: str, key: str) -> bool:
    """Whether a config of this type may say null for a key, as far as is known."""
    table = _table()
    if key == "tie_word_embeddings":
        return model_type not in table.checked
    return model_type not in table.keys.get(key, ())


def with_defaults(part: dict[str, Any]) -> dict[str, Any]:
    """A part of config.json with what its class fills in; a key that says null is not left out."""
    return {**_defaults().defaults.get(str(part.get("model_type")), {}), **part}


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
