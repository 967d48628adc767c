"""Commands as the parsers of older releases read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.knowledge.engine_tables import known_versions
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import ParsedCommand, parse_shell_script
from vllm_advisor.types.engine import Flag


def parsed(version: str, words: str) -> ParsedCommand:
    (command,) = parse_shell_script(words, "serve.sh", load_engine(version))
    return command


def values(version: str, flags: str) -> dict[str, Any]:
    command = parsed(version, f"vllm serve org/model {flags}")
    assert not command.problems
    assert not command.unknown
    return command.engine_args.as_dict()


@pytest.mark.parametrize(
    ("version", "words", "expected"),
    [
        ("0.8.5", "-O3", {"compilation_config": {"level": 3}}),
        ("0.8.5", "-O 2", {"compilation_config": {"level": 2}}),
        ("0.10.0", "-O3", {"compilation_config": {"level": 3}}),
        ("0.10.0", "-O=3", {"compilation_config": {"level": 3}}),
        ("0.10.0", "-O 3", {"compilation_config": {"level": 3}}),
        ("0.10.0", "-O.use_inductor false", {"compilation_config": {"use_inductor": False}}),
        ("0.11.2", "-O3", {"compilation_config": {"mode": 3}}),
        ("0.12.0", "-O3", {"optimization_level": "3"}),
        ("0.12.0", "-O.backend eager", {"compilation_config": {"backend": "eager"}}),
        ("0.33.0", "-O3", {"optimization_level": "3"}),
        ("0.33.0", "-O 3", {"optimization_level": "3"}),
    ],
)
def test_the_letter_o(version: str, words: str, expected: dict[str, Any]) -> None:
    assert values(version, words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--enable-chunked-prefill", True),
        ("--enable-chunked-prefill=False", False),
        ("--enable-chunked-prefill false", False),
        ("--enable_chunked_prefill True", True),
    ],
)
def test_a_switch_that_takes_a_word(words: str, expected: bool) -> None:
    assert values("0.8.4", words) == {"enable_chunked_prefill": expected}


def test_a_switch_takes_the_next_word_whatever_it_is() -> None:
    command = parsed("0.8.4", "vllm serve --enable-chunked-prefill org/model")
    assert [p.code for p in command.problems] == ["invalid-choice"]


def test_the_same_word_is_refused_later() -> None:
    command = parsed("0.8.5", "vllm serve org/model --enable-chunked-prefill=False")
    (problem,) = command.problems
    assert (problem.code, problem.fix) == (
        "boolean-with-value",
        "write --no-enable-chunked-prefill",
    )


@pytest.mark.parametrize("version", ["0.8.0", "0.8.5", "0.9.2"])
def test_pairs_instead_of_json(version: str) -> None:
    pairs = values(version, "--limit-mm-per-prompt image=2,video=1")
    assert pairs == {"limit_mm_per_prompt": {"image": 2, "video": 1}}


def test_pairs_went_and_json_came() -> None:
    words = "vllm serve org/model --limit-mm-per-prompt"
    assert [p.code for p in parsed("0.10.0", f"{words} image=2").problems] == ["json-invalid"]
    assert [p.code for p in parsed("0.8.0", f"{words} image").problems] == ["invalid-value"]
    # nullable_kvs splits at "=" only
    assert parsed("0.8.0", f"""{words} '{{"image": 2}}'""").problems
    assert values("0.9.0", """--limit-mm-per-prompt '{"image": 2}'""") == {
        "limit_mm_per_prompt": {"image": 2}
    }


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("0.8.4", "32k", 32000),
        ("0.13.0", "32K", 32768),
        ("0.14.0", "auto", -1),
        ("0.8.3", "8192", 8192),
    ],
)
def test_lengths(version: str, text: str, expected: int) -> None:
    assert values(version, f"--max-model-len {text}") == {"max_model_len": expected}


@pytest.mark.parametrize(("version", "text"), [("0.8.3", "32k"), ("0.13.0", "auto")])
def test_lengths_that_an_older_parser_refuses(version: str, text: str) -> None:
    command = parsed(version, f"vllm serve org/model --max-model-len {text}")
    assert [p.code for p in command.problems] == ["invalid-value"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.9.1", {"hf_overrides": {"a": {"b": "4"}}}),  # text, whatever it is
        ("0.9.2", {"hf_overrides": {"a": {"b": 4}}}),
        ("0.33.0", {"hf_overrides": {"a": {"b": 4}}}),
    ],
)
def test_values_of_dotted_keys(version: str, expected: dict[str, Any]) -> None:
    assert values(version, "--hf-overrides.a.b 4") == expected


def test_dotted_keys_before_there_were_any() -> None:
    command = parsed("0.8.5", "vllm serve org/model --hf-overrides.a 4")
    assert [u.token for u in command.unknown] == ["--hf-overrides.a"]


def test_suffixes_inside_of_json_came_late() -> None:
    words = """--kv-transfer-config '{"kv_buffer_size": 2k}'"""
    assert values("0.20.0", words) == {"kv_transfer_config": {"kv_buffer_size": 2000}}
    assert [p.code for p in parsed("0.19.1", f"vllm serve org/model {words}").problems] == [
        "json-invalid"
    ]
    dotted = "--kv-transfer-config.kv_buffer_size 2k"
    assert values("0.20.0", dotted) == {"kv_transfer_config": {"kv_buffer_size": 2000}}
    assert values("0.19.1", dotted) == {"kv_transfer_config": {"kv_buffer_size": "2k"}}


def test_the_model_as_a_flag() -> None:
    words = "vllm serve --model org/model"
    (problem,) = parsed("0.11.0", words).problems
    assert (problem.code, problem.fix) == ("model-flag-with-serve", "vllm serve org/model")
    later = parsed("0.11.1", words)
    assert (later.problems, later.model) == ((), "org/model")
    module = "python -m vllm.entrypoints.openai.api_server --model org/model"
    assert parsed("0.11.0", module).problems == ()


def test_a_served_name_without_a_model() -> None:
    words = "vllm serve --served-model-name name"
    assert [p.code for p in parsed("0.17.0", words).problems] == ["missing-model"]
    assert parsed("0.16.0", words).problems == ()


def test_a_value_that_is_not_recorded_is_not_judged() -> None:
    engine = load_engine("0.33.0")
    flag = Flag(dest="strange", spellings=("--strange",), kind=None, choices=("a",))
    engine = replace(engine, flags={**engine.flags, "strange": flag})
    (command,) = parse_shell_script("vllm serve org/model --strange b", "serve.sh", engine)
    assert command.engine_args.as_dict() == {"strange": "b"}
    assert not command.problems
    assert [note.message for note in command.notes] == [
        "how vLLM reads --strange b is not recorded"
    ]


ENGINES = {version: load_engine(version) for version in known_versions()}
WORDS = st.sampled_from(
    ("-O3", "-O", "-O.a", "3", "false", "image=2", "{}", "--model", "-cc.a", "--task", "x", "-")
)


@given(st.sampled_from(sorted(ENGINES)), st.lists(WORDS, max_size=5), st.data())
def test_no_release_raises(version: str, words: list[str], data: st.DataObject) -> None:
    names = sorted(s for f in ENGINES[version].flags.values() for s in f.spellings)
    flags = data.draw(st.lists(st.sampled_from(names), max_size=3))
    text = " ".join(("vllm serve org/model", *flags, *(f"'{word}'" for word in words)))
    (command,) = parse_shell_script(text, "serve.sh", ENGINES[version])
    assert set(command.engine_args.as_dict()) <= set(ENGINES[version].flags)
