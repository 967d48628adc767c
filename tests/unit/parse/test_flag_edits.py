"""Edits that the reader of a command proposes: only where the meaning is certain."""

from __future__ import annotations

import pytest

from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import ParsedCommand, parse_shell_script
from vllm_advisor.parse.text_edits import apply_edits, placed

ENGINE = load_engine()


def command(text: str) -> ParsedCommand:
    (found,) = parse_shell_script(text, "f", ENGINE)
    return found


def edited(text: str) -> str:
    """The text after every edit that applies."""
    found = [placed(text, edit) for problem in command(text).problems for edit in problem.edits]
    return apply_edits(text, [edit for edit in found if edit is not None])


@pytest.mark.parametrize(
    ("given", "fixed"),
    [
        ("--enable-prefix-caching True", "--enable-prefix-caching"),
        ("--enable-prefix-caching=true", "--enable-prefix-caching"),
        ("--enable-prefix-caching False", "--no-enable-prefix-caching"),
        ("--enable-prefix-caching=0", "--no-enable-prefix-caching"),
        ("--no-enable-prefix-caching False", "--enable-prefix-caching"),
        ('"--enable-prefix-caching=False"', '"--no-enable-prefix-caching"'),
        ("--dtype bf16", "--dtype bfloat16"),
        ("--dtype=FP16 --port 1", "--dtype=float16 --port 1"),
        ("--dtype 'BFloat16'", "--dtype 'bfloat16'"),
        ("--kv-cache-dtype FP8-E4M3", "--kv-cache-dtype fp8_e4m3"),
    ],
)
def test_edits_that_are_made(given: str, fixed: str) -> None:
    text = f"vllm serve m \\\n  {given}  # a comment\n"
    assert edited(text) == text.replace(given, fixed)
    assert command(edited(text)).problems == ()  # nothing is left to say
    assert edited(edited(text)) == edited(text)


@pytest.mark.parametrize(
    "given",
    [
        "--enable-prefix-caching   True",  # not one blank: left to a person
        "--enable-prefix-caching \\\n  True",
        "--enable-prefix-caching '' True",
        "--enable_prefix_caching=True",  # read with dashes, written otherwise
        "--dtype bf17",
        "--dtype b",
        "--kv-cache-dtype bf16x",
        "--max-model-len 8k5",
    ],
)
def test_edits_that_are_not_made(given: str) -> None:
    text = f"vllm serve m {given}\n"
    assert command(text).problems
    assert edited(text) == text


def test_a_value_that_comes_from_a_variable_is_left_alone() -> None:
    text = 'D=bf16\nvllm serve m --dtype "$D"\n'
    assert command(text).problems
    assert edited(text) == text


def test_an_array_is_edited_where_it_is_written() -> None:
    text = 'ARGS=(--dtype bf16)\nvllm serve m "${ARGS[@]}"\n'
    assert edited(text) == 'ARGS=(--dtype bfloat16)\nvllm serve m "${ARGS[@]}"\n'


def test_a_script_inside_a_script_is_edited_where_it_is_written() -> None:
    text = "bash -c 'vllm serve m --dtype bf16'\n"
    assert edited(text) == "bash -c 'vllm serve m --dtype bfloat16'\n"
