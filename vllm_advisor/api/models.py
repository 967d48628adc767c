"""Finds a model's facts: a folder or file, a bundled profile, then the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.eagle import EAGLE, EAGLE3, DraftFacts, eagle_facts
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.model_profiles import close_model_names, find_model_profile
from vllm_advisor.types.model import (
    ModelFacts,
)
from vllm_advisor.types.serving import ServingFacts
from vllm_advisor.types.source import Assumption, Source, SourceKind

if TYPE_CHECKING:
    from vllm_advisor.probe.local_model import RawModel


_ask_hub: ContextVar[bool] = ContextVar("ask_hub", default=True)


@contextmanager
def local_facts_only() -> Iterator[None]:
    """In this context the Hub is not asked: what only it knows is an UnknownFactError."""
    token = _ask_hub.set(False)
    try:
        yield
    finally:
        _ask_hub.reset(token)


@cache
def find_model(name: str) -> ModelFacts:
    """Facts of a model by path, bundled name or Hub id, in this order.

    A path is one that exists, or starts with ``.``, ``/`` or ``~``. A bundled model is never
    asked for on the Hub.

    Raises:
        InputError: the folder or its config.json cannot be used.
        UnknownFactError: nothing of this name is known, or the Hub cannot be asked.
        NotModelledError: the architecture is not modelled.
    """
    path = _local(name)
    if path is not None:
        raw = _local_model(path)
        # A relative folder must not read as an id on the Hub, wherever its name is written.
        here = "" if raw.model_id.startswith(("/", "./", "../")) else "./"
        return _from_raw(replace(raw, model_id=f"{here}{raw.model_id}"), ServingFacts())
    profile = find_model_profile(name)
    if profile is None:
        return _from_hub(name)
    source = Source(SourceKind.PROFILE, f"models/{profile.slug}")
    asked = name if "/" in name else profile.model_id
    return model_facts(
        asked,
        profile.config,
        source=source,
        checkpoint_bytes=profile.weights.bytes if profile.weights else None,
        weights_source=Source(SourceKind.PROFILE, f"models/{profile.slug}#weights"),
        serving=profile.serving,
    )


def config_of(name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """config.json and hf_quant_config.json of a model, found as :func:`find_model` finds it.

    Raises:
        InputError, UnknownFactError: as :func:`find_model`.
    """
    path = _local(name)
    profile = find_model_profile(name) if path is None else None
    if profile is not None:
        return profile.config, None
    raw = _hub_model(name) if path is None else _local_model(path)
    return raw.config, raw.hf_quant_config


def find_draft(name: str, method: str, target: ModelFacts) -> DraftFacts:
    """Facts of a draft model, found as :func:`find_model` finds models.

    Args:
        name: path, bundled name or Hub id.
        method: vLLM's name for the way it drafts.
        target: the model it drafts for.

    Raises:
        InputError, UnknownFactError, NotModelledError: as :func:`find_model`.
    """
    if method not in (EAGLE, EAGLE3):
        return DraftFacts(model=find_model(name))
    path, profile = _local(name), None
    if path is None:
        profile = find_model_profile(name)
    if profile is not None:
        source = Source(SourceKind.PROFILE, f"models/{profile.slug}")
        return eagle_facts(name, profile.config, method, target, source=source)
    raw = _hub_model(name) if path is None else _local_model(path)
    return eagle_facts(
        raw.model_id,
        raw.config,
        method,
        target,
        source=Source.parse(raw.config_uri),
        hf_quant_config=raw.hf_quant_config,
    )


def _local(name: str) -> Path | None:
    path = Path(name).expanduser()
    try:
        local = name.startswith((".", "/", "~")) or path.is_dir() or path.suffix == ".json"
    except (OSError, ValueError):  # no name that a file system could have
        return None
    return path if local else None


def _local_model(path: Path) -> RawModel:
    from vllm_advisor.probe.local_model import read_local_model  # noqa: PLC0415 - see _hub_model

    return read_local_model(path)


def _from_hub(name: str) -> ModelFacts:
    return _from_raw(_hub_model(name), ServingFacts())


def _hub_model(name: str) -> RawModel:
    if not _ask_hub.get():
        raise UnknownFactError(f"no local facts of {name}, and the Hub is not asked")
    from vllm_advisor.probe.hub import fetch_hub_model  # noqa: PLC0415 - bundled models need none

    try:
        return fetch_hub_model(name)
    except UnknownFactError as error:
        close = close_model_names(name)
        if close:
            error.fix = f"{error.fix}; bundled and close: {', '.join(close)}".lstrip("; ")
        raise


def _from_raw(raw: RawModel, serving: ServingFacts) -> ModelFacts:
    facts = model_facts(
        raw.model_id,
        raw.config,
        source=Source.parse(raw.config_uri),
        checkpoint_bytes=raw.checkpoint_bytes,
        weights_source=Source.parse(f"{raw.source}#safetensors"),
        hf_quant_config=raw.hf_quant_config,
        serving=serving,
    )
    notes = tuple(
        Assumption(id=f"model-note-{number}", text=text)
        for number, text in enumerate(raw.notes, start=1)
    )
    return replace(facts, assumptions=facts.assumptions + notes)
