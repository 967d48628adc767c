"""What one vLLM version knows: its flags (recorded from its parser) and what it takes for granted.

``profiles/engines/<version>.yaml`` are recorded by ``tools/snapshot_engine.py`` and read as JSON;
``profiles/engines/facts.yaml`` is hand-written, by ranges of versions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from vllm_advisor import resources
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import BatchDefaults, EngineFacts, Flag
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Source
from vllm_advisor.units import GIB

_FACTS = "facts.yaml"
_LISTS = ("spellings", "negations", "choices")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A fact for a range of versions."""

    versions: str
    source: str

    def holds(self, version: Version) -> bool:
        """Whether ``version`` lies in the range; pre-releases count as versions."""
        return SpecifierSet(self.versions).contains(version, prereleases=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number(_Entry):
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count(_Entry):
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch(_Entry):
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names(_Entry):
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceClass:
    memory_gib: int = 0
    name_without: str | None = None
    capability_not: int | None = None
    max_num_batched_tokens: int
    max_num_seqs: int

    def holds(self, accelerator: Accelerator) -> bool:
        """Whether vLLM puts this device into the class."""
        return (
            accelerator.memory_total >= self.memory_gib * GIB
            and (self.name_without is None or self.name_without not in accelerator.name.lower())
            and self.capability_not != accelerator.capability
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchDefaults(_Entry):
    classes: tuple[_DeviceClass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connectors(_Entry):
    grouped: dict[str, Literal["yes", "no", "unknown", "own_cache"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuantizationMethods(_Entry):
    methods: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    gpu_memory_utilization: tuple[_Number, ...]
    block_size: tuple[_Count, ...]
    async_scheduling: tuple[_Switch, ...]
    gdn_prefill_checkpoint: tuple[_Switch, ...]
    image_uid: tuple[_Count, ...]
    sparse_pcp_graphs: tuple[_Switch, ...]
    float_cache_is_models: tuple[_Switch, ...]
    tower_on_first_stage: tuple[_Switch, ...]
    kv_connectors: tuple[_Connectors, ...]
    synchronous_drafting: tuple[_Names, ...]
    draft_shares_embedding: tuple[_Switch, ...]
    draft_lookahead_in_batch: tuple[_Switch, ...]
    batch_defaults: tuple[_BatchDefaults, ...]
    quantization_min_capability: tuple[_QuantizationMethods, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSources:
    """Where the facts of an :class:`EngineFacts` that are not flags were read."""

    gpu_memory_utilization: Source
    block_size: Source
    async_scheduling: Source
    gdn_prefill_checkpoint: Source
    image_uid: Source
    sparse_pcp_graphs: Source
    float_cache_is_models: Source
    tower_on_first_stage: Source
    kv_connectors: Source
    synchronous_drafting: Source
    draft_shares_embedding: Source
    draft_lookahead_in_batch: Source
    batch_defaults: Source
    quantization_min_capability: Source


def known_versions() -> tuple[str, ...]:
    """Versions whose parser is recorded, oldest first."""
    files = resources.profiles("engines").glob("*.yaml")
    return tuple(sorted((f.stem for f in files if f.name != _FACTS), key=Version))


@cache
def load_engine(version: str | None = None) -> EngineFacts:
    """Facts of a vLLM version.

    Args:
        version: ``0.33.0``, also as ``v0.33.0`` or with a local part (``0.33.0+cu129``); ``None``
            for the newest known.

    Returns:
        Facts with ``known=False`` when the version itself is not recorded; they are then those of
        ``version_used``: the nearest recorded release that is not newer, or the one of the same
        minor version.

    Raises:
        InputError: the text is no version.
        UnknownFactError: the version is older than all that are recorded.
    """
    known = known_versions()
    asked = _version(version or known[-1])
    used = _nearest(asked, known)
    recorded = json.loads((resources.profiles("engines") / f"{used}.yaml").read_text("utf-8"))
    facts = _facts_of(used)
    return EngineFacts(
        version=str(asked),
        flags={entry["dest"]: _flag(entry) for entry in recorded["flags"]},
        gpu_memory_utilization=facts["gpu_memory_utilization"].value,
        block_size=facts["block_size"].value,
        async_scheduling=facts["async_scheduling"].value,
        gdn_prefill_checkpoint=facts["gdn_prefill_checkpoint"].value,
        image_uid=facts["image_uid"].value,
        sparse_pcp_graphs=facts["sparse_pcp_graphs"].value,
        float_cache_is_models=facts["float_cache_is_models"].value,
        tower_on_first_stage=facts["tower_on_first_stage"].value,
        kv_connectors=facts["kv_connectors"].grouped,
        synchronous_drafting=facts["synchronous_drafting"].names,
        draft_shares_embedding=facts["draft_shares_embedding"].value,
        draft_lookahead_in_batch=facts["draft_lookahead_in_batch"].value,
        source=recorded["source"],
        known=asked == Version(used),
        version_used=used,
    )


def batch_defaults(engine: EngineFacts, accelerator: Accelerator) -> BatchDefaults:
    """Scheduler defaults of ``vllm serve`` on one device, before a model or a flag changes them.

    Raises:
        UnknownFactError: no class of devices is recorded that holds this one.
    """
    for device in _facts_of(engine.version_used or engine.version)["batch_defaults"].classes:
        if device.holds(accelerator):
            return BatchDefaults(
                max_num_batched_tokens=device.max_num_batched_tokens,
                max_num_seqs=device.max_num_seqs,
            )
    raise UnknownFactError(
        f"no scheduler defaults are recorded for {accelerator.name} on vLLM {engine.version}",
        fix="give max_num_batched_tokens and max_num_seqs",
    )


def quantization_min_capability(engine: EngineFacts) -> dict[str, int]:
    """Least compute capability (8.9 is 89) of each quantization method of the version."""
    facts = _facts_of(engine.version_used or engine.version)
    return dict(facts["quantization_min_capability"].methods)


def runs_fp8_weights(
    engine: EngineFacts, model: ModelFacts, accelerator: Accelerator | None
) -> bool:
    """Whether ``--quantization fp8`` is taken for 16-bit weights on this GPU."""
    if accelerator is None or model.quantization is not None:
        return False
    return accelerator.capability >= quantization_min_capability(engine)["fp8"]


def engine_sources(engine: EngineFacts) -> EngineSources:
    """Where each hand-written fact of the version was read."""
    facts = _facts_of(engine.version_used or engine.version)
    return EngineSources(**{name: Source.parse(entry.source) for name, entry in facts.items()})


def _version(text: str) -> Version:
    """Public part of a version (``+cpu`` and ``+cu129`` name builds of the same code)."""
    try:
        return Version(Version(text).public)
    except InvalidVersion as error:
        raise InputError(
            f"{text!r} is no vLLM version",
            where="vllm_version",
            fix=f"write one such as {known_versions()[-1]}",
        ) from error


def _nearest(asked: Version, known: tuple[str, ...]) -> str:
    """The recorded version whose facts are used for ``asked``."""
    same_minor = [k for k in known if Version(k).release[:2] == asked.release[:2]]
    not_newer = [k for k in known if Version(k) <= asked]
    if not_newer and (not same_minor or not_newer[-1] in same_minor):
        return not_newer[-1]
    if same_minor:
        return same_minor[0]
    raise UnknownFactError(
        f"vLLM {asked} is older than what is recorded",
        where="vllm_version",
        fix=f"known versions: {', '.join(known)}; record another with tools/snapshot_engine.py "
        "in an environment that has it",
    )


def _flag(entry: dict[str, Any]) -> Flag:
    fields: dict[str, Any] = {k: tuple(v) if k in _LISTS else v for k, v in entry.items()}
    return Flag(**fields)


@cache
def _facts() -> _Facts:
    return read_profile(resources.profiles("engines") / _FACTS, _Facts)


@cache
def _facts_of(version: str) -> dict[str, Any]:
    """The entry of each fact that holds for a recorded version.

    Raises:
        UnknownFactError: a fact has no entry for the version.
    """
    chosen = {}
    for name in (field.name for field in fields(_Facts)):
        entries = getattr(_facts(), name)
        entry = next((e for e in entries if e.holds(Version(version))), None)
        if entry is None:
            raise UnknownFactError(
                f"{name} is not recorded for vLLM {version}",
                where="profiles/engines/facts.yaml",
                fix="add a range that holds the version",
            )
        chosen[name] = entry
    return chosen
