"""The records of names by version: well formed, and right where they can be held against others."""

from __future__ import annotations

from itertools import pairwise

import pytest
from packaging.version import Version

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engines import known_versions, load_engine
from vllm_advisor.knowledge.quantization_support import gone_method
from vllm_advisor.knowledge.version_names import (
    Span,
    debugging_variables,
    parser_family,
    parser_names,
    parser_spans,
    variable_names,
    variable_replacement,
    variable_spans,
)

RELEASES = ("0.8.3", "0.10.2", "0.14.1", "0.23.0", "0.33.0")


def test_span_holds_at_both_ends() -> None:
    span = Span(name="x", since="0.9.0", until="0.14.1")
    held = [v for v in ("0.8.5", "0.9.0", "0.12.0", "0.14.1", "0.15.0") if span.holds(v)]
    assert held == ["0.9.0", "0.12.0", "0.14.1"]
    assert Span(name="x", since="0.9.0").holds("0.99.0")


@pytest.mark.parametrize("release", RELEASES)
def test_spans_of_a_name_follow_each_other(release: str) -> None:
    names = variable_names(release)
    assert len(names) == len(set(names)) > 50
    for name in names:
        spans = variable_spans(name)
        assert all(s.until is None or Version(s.since) <= Version(s.until) for s in spans)
        assert all(
            first.until is not None and Version(first.until) < Version(second.since)
            for first, second in pairwise(spans)
        )


def test_parsers_of_two_releases() -> None:
    # vllm/reasoning of 0.8.5 registers these two.
    assert set(parser_names("reasoning", "0.8.5")) == {"deepseek_r1", "granite"}
    assert {"hermes", "openai", "gemma4"} <= set(parser_names("tool", "0.33.0"))
    assert [s.since for s in parser_spans("tool", "openai")] == ["0.10.2"]


def test_older_releases_are_not_guessed() -> None:
    with pytest.raises(UnknownFactError, match=r"0\.7\.3"):
        variable_names("0.7.3")
    with pytest.raises(UnknownFactError, match="tool parsers"):
        parser_names("tool", "0.8.2")


def test_replacements_take_the_value_along() -> None:
    fix = variable_replacement("VLLM_ATTENTION_BACKEND", "FLASHINFER")
    assert fix == "--attention-backend FLASHINFER"
    assert variable_replacement("VLLM_CACHE_ROOT", "/cache") is None


def test_debugging_variables_of_vllm_exist() -> None:
    own = {v.name for v in debugging_variables() if v.name.startswith("VLLM_")}
    assert own <= set(variable_names("0.33.0"))


def test_families_are_of_known_parsers() -> None:
    family = parser_family("openai")
    assert family is not None
    assert "openai" in parser_names("tool", "0.33.0")
    assert parser_family("hermes") is None


@pytest.mark.parametrize("version", [v for v in known_versions() if Version(v) >= Version("0.32")])
def test_methods_that_left_are_no_choices(version: str) -> None:
    flag = load_engine(version).flags["quantization"]
    for name in ("gguf", "bitsandbytes", "hqq", "ptpc_fp8"):
        method = gone_method(name)
        assert method is not None
        assert method.has_left(version)
        assert name not in flag.choices
