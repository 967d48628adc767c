"""Bundled facts, listed and printed."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from vllm_advisor import resources
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.bundled_workloads import bundled_workloads
from vllm_advisor.knowledge.engine_tables import known_versions, recorded_text
from vllm_advisor.knowledge.gpus import find_gpu, load_gpus
from vllm_advisor.knowledge.model_profiles import find_model_profile, model_profile_names


def profile_names(kind: str) -> tuple[str, ...]:
    """Names of the bundled ``gpus``, ``models``, ``workloads`` or ``engines``."""
    listing: dict[str, Callable[[], tuple[str, ...]]] = {
        "gpus": load_gpus,
        "models": model_profile_names,
        "workloads": bundled_workloads,
        "engines": known_versions,
    }
    return listing[kind]()


def profile_text(kind: str, name: str) -> str:
    """The text of one bundled profile, with its sources.

    Raises:
        InputError: there is none of that name.
        UnknownFactError: the GPU name fits none or several.
    """
    slug = name
    if kind == "gpus":
        slug = find_gpu(name).id
    elif kind == "models":
        profile = find_model_profile(name)
        slug = profile.slug if profile else name
    names = profile_names(kind)
    if slug not in names:
        close = get_close_matches(name, names, n=3)
        raise InputError(
            f"there is no bundled profile {name!r} of {kind}",
            where=name,
            fix=f"close: {', '.join(close)}" if close else f"`vllm-advisor profiles {kind}`",
        )
    if kind == "engines":
        return recorded_text(slug)
    return (resources.profiles(kind) / f"{slug}.yaml").read_text(encoding="utf-8")
