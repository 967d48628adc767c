"""Multimodal classes whose text model is of a class of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from vllm_advisor import resources
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.profile_file import read_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    source: str
    wrappers: tuple[str, ...]
    text_models: dict[str, str]  # model_type: class
    tied: tuple[str, ...]  # what transformers takes where config.json says nothing of the whole
    untied: tuple[str, ...]


@cache
def _table() -> _File:
    return read_profile(resources.profiles("multimodal") / "wrappers.yaml", _File)


def text_class(name: str, text: dict[str, Any]) -> str:
    """The class whose layers a model's text part has: its own, unless it wraps another.

    Args:
        name: the model's class.
        text: the text model's part of config.json.

    Raises:
        NotModelledError: it wraps a text model that config.json does not name.
    """
    table = _table()
    if name not in table.wrappers:
        return name
    named = text.get("architectures")
    if named and named != [name]:
        return str(named[0])
    inner = table.text_models.get(str(text.get("model_type") or "llama"))
    if inner is None:
        raise NotModelledError(
            f"{name} wraps a text model of type {text.get('model_type')}, whose class is not known",
            where="config.json",
            fix="name the class in text_config: architectures",
        )
    return inner


def tied_by_class(name: str) -> bool | None:
    """Whether a multimodal class ties its embeddings by default; ``None``: its text model says."""
    table = _table()
    return name in table.tied if name in (*table.tied, *table.untied) else None
