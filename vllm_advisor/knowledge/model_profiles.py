"""Model profiles: config.json, weight bytes and serving flags of well-known models, offline.

One file per shape, named after the model id: ``org/Name`` lies in ``name.yaml``. Other ids of the
same shape (base and chat checkpoints, renamed organisations) are listed in the file as aliases;
nothing else registers a profile.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vllm_advisor import resources
from vllm_advisor.knowledge.profile_file import profile_names, read_profile
from vllm_advisor.types.serving import ServingFacts, ServingVariant
from vllm_advisor.types.source import Source, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileWeights:
    """What vLLM allocates for the weights at TP 1; ``parameters`` counts packed elements."""

    parameters: int
    bytes: int
    bytes_by_dtype: dict[str, int]
    source: str

    def __post_init__(self) -> None:
        total = sum(self.bytes_by_dtype.values())
        if total != self.bytes:
            raise ValueError(f"bytes_by_dtype sums to {total}, not to bytes ({self.bytes})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yarn:
    """The largest YaRN factor the publisher documents, over how many positions."""

    factor: float
    original_max_position_embeddings: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    name: str
    model_id: str
    precision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serving:
    min_vllm_version: str | None = None
    base_args: dict[str, Any] = field(default_factory=dict)
    hardware_args: dict[str, dict[str, Any]] = field(default_factory=dict)
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: tuple[_Variant, ...] = ()
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The first keys of a file."""

    model_id: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelFile(_Head):
    source: str
    notes: str = ""
    config: dict[str, Any]
    weights: ProfileWeights | None = None
    serving: _Serving | None = None
    yarn: _Yarn | None = None

    def __post_init__(self) -> None:
        if not self.config.get("architectures"):
            raise ValueError("config names no architectures")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """One bundled model.

    ``config`` is its config.json reduced to shape, cache, weights, RoPE and quantization; it is
    the caller's own copy. ``source`` says where the config comes from, ``notes`` what in it is
    doubtful or was corrected.
    """

    slug: str
    model_id: str
    aliases: tuple[str, ...]
    config: dict[str, Any]
    source: str
    notes: str
    weights: ProfileWeights | None
    serving: ServingFacts


def model_profile_names() -> tuple[str, ...]:
    """Slugs of all bundled models, sorted."""
    return profile_names(resources.profiles("models"))


def find_model_profile(model: str) -> ModelProfile | None:
    """The profile of a slug, a Hub id or an alias, in any case; ``None`` when there is none.

    An alias is found by its last part, too (``llama-3.1-8b``). An id of another organisation is
    not taken for the bundled one, whatever its last part: a fork may have another shape.

    Raises:
        InputError: the file breaks its schema.
    """
    wanted = model.strip().casefold()
    if _slug(wanted) in model_profile_names():  # nearly always: one file read
        profile = _load(_slug(wanted))
        if wanted in (profile.slug, profile.model_id.casefold()):
            return profile
    slug = _slugs_by_name().get(wanted)
    return None if slug is None else _load(slug)


def close_model_names(name: str) -> list[str]:
    """Hub ids that look like ``name``, best first; at most five."""
    slugs, wanted = _slugs_by_name(), name.strip().casefold()
    close = difflib.get_close_matches(wanted, slugs, n=10, cutoff=0.6)
    ids = [_heads()[slugs[key]].model_id for key in close]
    return list(dict.fromkeys(ids))[:5]


@cache
def _heads() -> dict[str, _Head]:
    """Slug to names: what stands before ``source:``, read in a fiftieth of the time."""
    folder = resources.profiles("models")
    return {
        slug: read_profile(folder / f"{slug}.yaml", _Head, before="source")
        for slug in model_profile_names()
    }


@cache
def _slugs_by_name() -> dict[str, str]:
    """Every name a profile answers to, in lower case, to its slug; a slug wins over an alias."""
    names: dict[str, str] = {}
    for slug, head in _heads().items():
        for name in (head.model_id, *head.aliases):
            names[name.casefold()] = names[_slug(name)] = slug
    return names | {slug: slug for slug in _heads()}


def _slug(model_id: str) -> str:
    return model_id.rsplit("/", 1)[-1].casefold()


def _load(slug: str) -> ModelProfile:
    file = read_profile(resources.profiles("models") / f"{slug}.yaml", _ModelFile)
    return ModelProfile(
        slug=slug,
        model_id=file.model_id,
        aliases=file.aliases,
        config=file.config,
        source=file.source,
        notes=file.notes,
        weights=file.weights,
        serving=_serving_facts(file),
    )


def _serving_facts(file: _ModelFile) -> ServingFacts:
    serving, yarn = file.serving, file.yarn
    return ServingFacts(
        min_vllm_version=serving.min_vllm_version if serving else None,
        base_args=serving.base_args if serving else {},
        hardware_args=serving.hardware_args if serving else {},
        features=serving.features if serving else {},
        variants=tuple(
            ServingVariant(name=v.name, model_id=v.model_id, precision=v.precision)
            for v in (serving.variants if serving else ())
        ),
        yarn_factor=yarn.factor if yarn else None,
        yarn_original=yarn.original_max_position_embeddings if yarn else None,
        source=_docs(serving.source) if serving else None,
        context_source=_docs(yarn.source) if yarn else None,
    )


def _docs(text: str) -> Source:
    return Source(SourceKind.DOCS, text.removeprefix("docs:"))
