"""Which layout a model's class has: the files of ``profiles/architectures/`` and their variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from vllm_advisor import resources
from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.profile_file import read_yaml, record


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """What a config that says all of ``when`` changes, or why it is not understood.

    A key that the config leaves out counts as ``None``.
    """

    when: dict[str, Any]
    change: dict[str, Any] = field(default_factory=dict)
    refuse: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """What a file sets for one architecture, before a config chooses among its variants."""

    fields: dict[str, Any]
    variants: tuple[_Variant, ...]
    path: Path


def find_architecture(name: str, config: dict[str, Any] | None = None) -> Architecture | None:
    """The layout of an architecture by its Hugging Face class name, or ``None`` if unknown.

    Args:
        name: the class name.
        config: the text model's part of config.json, which may choose a variant.

    Raises:
        NotModelledError: the config asks for a variant that is not understood.
    """
    family = _read(name)
    if family is None:
        return None
    fields = family.fields
    for variant in family.variants if config else ():
        if any((config or {}).get(key) != value for key, value in variant.when.items()):
            continue
        if variant.refuse:
            said = " and ".join(f"{key} {value}" for key, value in variant.when.items())
            raise NotModelledError(
                f"{name}{' with ' if said else ''}{said} is not modelled: {variant.refuse}",
                where="config.json",
                fix="take the figures from vLLM's start-up log for this model",
            )
        fields = {**fields, **variant.change}
    return record(Architecture, fields, family.path)


@cache
def _read(name: str) -> _Family | None:
    for path in sorted(resources.profiles("architectures").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if name not in text:
            continue
        content = read_yaml(path)
        names, overrides = content.pop("architectures"), content.pop("overrides", {})
        variants = tuple(record(_Variant, v, path) for v in content.pop("variants", ()))
        if name in names:
            fields = {**content, **overrides.get(name, {})}
            return _Family(fields=fields, variants=variants, path=path)
    return None
