"""Reading bundled files without pydantic: what the annotations say, and what only tests ask."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from vllm_advisor import resources
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.architecture_files import find_architecture
from vllm_advisor.knowledge.gpus import gpu_profile, load_gpus
from vllm_advisor.knowledge.model_profiles import find_model_profile, model_profile_names
from vllm_advisor.knowledge.profile_file import record

HERE = Path("file.yaml")


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    size: float = 1.0

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise ValueError("size has to be above zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    parts: tuple[Part, ...]
    pair: tuple[int, int]
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    either: bool | str = False
    maybe: int | None = None
    named: dict[str, Part] = field(default_factory=dict)
    anything: Any = None


GOOD: dict[str, Any] = {"parts": [{"name": "x", "size": 2}], "pair": [1, 2]}


def test_lists_become_tuples_and_nested_keys_become_records() -> None:
    given = {**GOOD, "colour": "red", "either": "key", "named": {"y": {"name": "z"}}, "maybe": 3}
    assert record(Whole, given, HERE) == Whole(
        parts=(Part(name="x", size=2.0),),
        pair=(1, 2),
        either="key",
        maybe=3,
        named={"y": Part(name="z")},
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"other": 1}, "at other: there is no such key"),
        ({"parts": [{"size": 1}]}, "at parts.0.name: it is missing"),
        ({"parts": [{"name": 7}]}, "at parts.0.name: 7 is no"),
        ({"parts": [{"name": "x", "size": 0}]}, "at parts.0: size has to be above zero"),
        ({"parts": "x"}, "at parts: a list is expected"),
        ({"pair": [1, 2, 3]}, "at pair: 2 items are expected"),
        ({"pair": [1, True]}, "at pair.1: True is no"),
        ({"colour": "blue"}, "at colour: 'blue' is none of"),
        ({"kind": "c"}, "at kind: 'c' is none of"),
        ({"either": 1}, "at either: 1 is none of"),
        ({"maybe": "3"}, "at maybe: '3' is no"),
        ({"named": {"y": {}}}, "at named.y.name: it is missing"),
        ({"named": []}, "at named: keys and values are expected"),
    ],
)
def test_what_breaks_the_schema_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        record(Whole, {**GOOD, **changes}, HERE)
    assert said in caught.value.what
    assert caught.value.where == "file.yaml"


def test_every_bundled_architecture_follows_its_schema() -> None:
    for path in resources.profiles("architectures").glob("*.yaml"):
        for name in yaml.safe_load(path.read_text())["architectures"]:
            assert find_architecture(name) is not None, name


def test_figures_and_names_of_gpus_are_well_formed() -> None:
    for gpu in map(gpu_profile, load_gpus()):
        assert gpu.names, gpu.id
        assert re.fullmatch(r"\d+\.\d", gpu.compute_capability), gpu.id
        assert all(p.usd_per_gpu_hour > 0 for p in gpu.prices), gpu.id


def test_ids_and_counts_of_models_are_well_formed() -> None:
    for slug in model_profile_names():
        profile = find_model_profile(slug)
        assert profile is not None
        variants = [v.model_id for v in profile.serving.variants]
        for name in (profile.model_id, *profile.aliases, *variants):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", name), (slug, name)
        assert profile.source, slug
        if profile.weights is not None:
            counts = (profile.weights.parameters, *profile.weights.bytes_by_dtype.values())
            assert min(counts) > 0, slug
        factor = profile.serving.yarn_factor
        assert factor is None or factor > 1, slug
