"""Packages that are plugins of vLLM. Recorded under ``profiles/checks/plugins.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vllm_advisor import resources
from vllm_advisor.knowledge.profile_file import read_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPackage:
    """A package as pip names it; ``methods`` are quantization methods, none of a platform's."""

    name: str
    source: str
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    quantization: tuple[PluginPackage, ...]
    platform: tuple[PluginPackage, ...]


def plugin_package(name: str) -> PluginPackage | None:
    """What is known of a package, ``None`` where it is not known as a plugin."""
    wanted = name.lower().replace("_", "-")
    file = _file()
    return next((p for p in (*file.quantization, *file.platform) if p.name == wanted), None)


@cache
def _file() -> _File:
    return read_profile(resources.profiles("checks") / "plugins.yaml", _File)
