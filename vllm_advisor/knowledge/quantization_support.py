"""Which quantization a vLLM version has, and what its builds need of a GPU.

Recorded under ``profiles/checks/quantization.yaml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from vllm_advisor import resources
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.model import QuantizationFacts

_MX_SCALE_BITS = 8 / 32
_FOUR_BITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneMethod:
    """A method that left vLLM: the last release with it, its plugin, and what to take instead."""

    name: str
    until: str
    instead: str
    source: str
    plugin: str | None = None

    def has_left(self, version: str) -> bool:
        """Whether a release no longer has it."""
        return Version(version) > Version(self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elsewhere:
    name: str
    plugin: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deprecated:
    versions: str
    methods: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Since:
    since: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    versions: str
    capability: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    gone: tuple[GoneMethod, ...]
    elsewhere: tuple[_Elsewhere, ...]
    deprecated: tuple[_Deprecated, ...]
    block_fp8_before_ada: _Since
    nvfp4_weights_on_turing: _Since
    auto_dtype_falls_back: _Since
    builds: tuple[_Build, ...]


def gone_method(name: str) -> GoneMethod | None:
    """What is known of a method that newer releases do not have."""
    return next((m for m in _file().gone if m.name == name), None)


def platform_plugin(method: str) -> str | None:
    """The platform plugin that brings a method along with its devices."""
    return next((e.plugin for e in _file().elsewhere if e.name == method), None)


def deprecated_methods(version: str) -> tuple[str, ...]:
    """Methods that a release refuses unless it is told to take them."""
    held = (d for d in _file().deprecated if _holds(d.versions, version))
    return next((d.methods for d in held), ())


def block_fp8_needs_ada(version: str) -> bool:
    """Whether block-scaled FP8 weights need compute capability 8.9 in a release."""
    return Version(version) < Version(_file().block_fp8_before_ada.since)


def nvfp4_needs_ampere(version: str) -> bool:
    """Whether NVFP4 weights of compressed-tensors need compute capability 8.0 in a release."""
    return Version(version) < Version(_file().nvfp4_weights_on_turing.since)


def auto_dtype_falls_back(version: str) -> bool:
    """Whether ``--dtype auto`` takes float16 where the GPU has no bfloat16."""
    return Version(version) >= Version(_file().auto_dtype_falls_back.since)


def build_capability(version: str) -> int:
    """Least compute capability (7.5 is 75) that the released builds have kernels for.

    Raises:
        UnknownFactError: nothing is recorded for the release.
    """
    for build in _file().builds:
        if _holds(build.versions, version):
            return build.capability
    raise UnknownFactError(f"the GPUs that vLLM {version} is built for are not recorded")


def engine_methods(facts: QuantizationFacts) -> tuple[str, ...]:
    """vLLM's own names for what a checkpoint declares; several where the facts do not tell.

    Sources: override_quantization_method of the classes under
    vllm/model_executor/layers/quantization (ModelOpt's algorithms).
    """
    if facts.method != "modelopt":
        return (facts.method,)
    if facts.bits == _FOUR_BITS:
        return ("modelopt_fp4", "modelopt_mixed")
    if facts.scale_bits == _MX_SCALE_BITS:
        return ("modelopt_mxfp8", "modelopt_mixed")
    return ("modelopt", "modelopt_mixed")


def _holds(versions: str, version: str) -> bool:
    return SpecifierSet(versions).contains(version, prereleases=True)


@cache
def _file() -> _File:
    return read_profile(resources.profiles("checks") / "quantization.yaml", _File)
