"""What a vLLM version takes for granted: ``profiles/engines/facts.yaml``, by ranges of versions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from vllm_advisor import resources
from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engine_tables import FACTS
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.units import GIB


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
class _User(_Entry):
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch(_Entry):
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names(_Entry):
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceClass:
    memory_gib: int = 0
    name_with: str | None = None
    name_without: str | None = None
    capability_not: int | None = None
    max_num_batched_tokens: int
    max_num_seqs: int

    def holds(self, accelerator: Accelerator) -> bool:
        """Whether vLLM puts this device into the class."""
        name = accelerator.name.lower()
        return (
            accelerator.memory_total >= self.memory_gib * GIB
            and (self.name_with is None or self.name_with in name)
            and (self.name_without is None or self.name_without not in name)
            and self.capability_not != accelerator.capability
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchDefaults(_Entry):
    classes: tuple[_DeviceClass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsing(_Entry):
    dotted_keys: Literal["none", "text", "json"]
    number_suffixes: bool
    short_o: Literal["word", "level", "mode", "dotted", "flag"]
    model_flag: bool
    name_needs_model: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    parsing: tuple[_Parsing, ...]
    gpu_memory_utilization: tuple[_Number, ...]
    block_size: tuple[_Count, ...]
    async_scheduling: tuple[_Switch, ...]
    gdn_prefill_checkpoint: tuple[_Switch, ...]
    image_uid: tuple[_User, ...]
    sparse_pcp_graphs: tuple[_Switch, ...]
    float_cache_is_models: tuple[_Switch, ...]
    tower_on_first_stage: tuple[_Switch, ...]
    own_cache_connectors: tuple[_Names, ...]
    synchronous_drafting: tuple[_Names, ...]
    draft_shares_embedding: tuple[_Switch, ...]
    draft_lookahead_in_batch: tuple[_Switch, ...]
    batch_defaults: tuple[_BatchDefaults, ...]
    layout_checked: tuple[_Switch, ...]


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """The entry of each fact for one version; ``carried`` are those of a newer version."""

    entries: dict[str, Any]
    carried: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:
        return self.entries[name]


@cache
def facts_of(version: str) -> VersionFacts:
    """Facts of a recorded release.

    What is recorded for newer versions only is carried over from the oldest of them, and named.

    Raises:
        UnknownFactError: ranges of a fact leave the version out though they reach below it.
    """
    at = Version(version)
    chosen, carried = {}, []
    for name in (field.name for field in fields(_Facts)):
        entries = getattr(_facts(), name)
        entry = next((e for e in entries if e.holds(at)), None)
        if entry is None and _older_than(at, entries[-1]):
            entry = entries[-1]
            carried.append(name)
        if entry is None:
            raise UnknownFactError(
                f"{name} is not recorded for vLLM {version}",
                where="profiles/engines/facts.yaml",
                fix="add a range that holds the version",
            )
        chosen[name] = entry
    return VersionFacts(chosen, tuple(carried))


def _older_than(version: Version, entry: Any) -> bool:
    """Whether a version lies below a range that has a lower end."""
    lower = [Version(s.version) for s in SpecifierSet(entry.versions) if s.operator == ">="]
    return bool(lower) and version < lower[0]


@cache
def _facts() -> _Facts:
    return read_profile(resources.profiles("engines") / FACTS, _Facts)
