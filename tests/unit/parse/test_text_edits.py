"""Edits of shell and YAML texts: they apply where their text stands, and touch nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.parse.text_edits import apply_edits, overlap, placed
from vllm_advisor.parse.yaml_insertion import (
    insert_after_line,
    insert_beside_key,
    key_indentation,
)
from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit

SHELL = """\
#!/bin/bash
# keep this comment
vllm serve m \\
    --enable-prefix-caching True   --dtype "bf16"  # and this one
"""


def edit(line: int, column: int, old: str, new: str) -> Edit:
    return Edit(file="f", line=line, column=column, old=old, new=new)


def test_edits_of_a_script_keep_everything_else() -> None:
    edits = [
        edit(4, 5, "--enable-prefix-caching True", "--enable-prefix-caching"),
        edit(4, 45, "bf16", "bfloat16"),
    ]
    done = apply_edits(SHELL, edits)
    assert done == SHELL.replace(" True", "").replace("bf16", "bfloat16")
    assert done == apply_edits(SHELL, reversed(edits))  # their order does not matter


def test_an_edit_may_span_lines() -> None:
    one = edit(3, 14, "\\\n    --enable", "--enable")
    assert one.end == (4, 13)
    assert "serve m --enable-prefix" in apply_edits(SHELL, [one])


def test_line_ends_of_windows_stay() -> None:
    text = "a: 1\r\nb: 2 \r\n"
    assert apply_edits(text, [edit(2, 4, "2", "33")]) == "a: 1\r\nb: 33 \r\n"


@pytest.mark.parametrize(
    ("edits", "clash"),
    [
        ([edit(1, 1, "ab", "x"), edit(1, 3, "cd", "y")], False),  # side by side
        ([edit(1, 1, "abc", "x"), edit(1, 3, "cd", "y")], True),
        ([edit(1, 1, "abcd", "x"), edit(1, 2, "b", "y")], True),  # one inside the other
        ([edit(1, 1, "ab", "x"), edit(1, 1, "ab", "y")], True),
        ([edit(1, 1, "ab", "x"), edit(1, 1, "ab", "x")], False),  # the same one twice
        ([edit(1, 2, "", "x"), edit(1, 2, "", "y")], True),  # in which order?
        ([edit(1, 2, "", "x"), edit(1, 1, "abc", "y")], True),
        ([edit(1, 3, "", "x"), edit(1, 1, "ab", "y")], False),
    ],
)
def test_overlapping_edits_are_refused(edits: list[Edit], clash: bool) -> None:
    assert overlap("abcd", edits) is clash
    if clash:
        with pytest.raises(ValueError, match="same place"):
            apply_edits("abcd", edits)
    else:
        apply_edits("abcd", edits)


@pytest.mark.parametrize("at", [(1, 2), (2, 1), (9, 1), (1, 99), (1, 0)])
def test_text_that_is_not_there_is_not_replaced(at: tuple[int, int]) -> None:
    assert placed("abcd\nefgh", edit(*at, "ab", "x")) is None
    with pytest.raises(ValueError, match="does not stand"):
        apply_edits("abcd\nefgh", [edit(*at, "ab", "x")])


def test_a_word_in_quotes_is_found_behind_its_quote() -> None:
    one = edit(1, 9, "bf16", "bfloat16")
    moved = placed('--dtype "bf16"', one)
    assert moved is not None
    assert apply_edits('--dtype "bf16"', [moved]) == '--dtype "bfloat16"'
    assert placed('--dtype "bf16 "', one) is None
    assert placed("--dtype $D", one) is None


@given(
    text=st.text(st.sampled_from("ab \n\r'"), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    new=st.text(st.sampled_from("xy\n"), max_size=3),
)
def test_edits_equal_a_replacement_of_the_parts(text: str, cuts: list[int], new: str) -> None:
    """Every second part between sorted cuts is replaced; the others stay, character by character."""
    ends = sorted({min(cut, len(text)) for cut in cuts})
    bounds = [0, *ends, len(text)]
    parts = [text[a:b] for a, b in pairwise(bounds)]
    edits = []
    start = 0
    for index, part in enumerate(parts):
        if index % 2 and part:
            line = text.count("\n", 0, start) + 1
            column = start - (text.rfind("\n", 0, start) + 1) + 1
            edits.append(edit(line, column, part, new))
            assert edits[-1].end == (
                text.count("\n", 0, start + len(part)) + 1,
                start + len(part) - (text.rfind("\n", 0, start + len(part)) + 1) + 1,
            )
        start += len(part)
    expected = "".join(new if i % 2 and part else part for i, part in enumerate(parts))
    assert apply_edits(text, edits) == expected


# --- insertions into YAML

POD = """\
spec:
  # a comment
  containers:
    - name: vllm   # the server
      image: vllm/vllm-openai:v0.33.0
      args:
      - --model
      - m
      command: ["sh", "-c", "x"]
      script: |
        line one

        line two

      env: {A: "1", B: "2"}
    - name: other
  restartPolicy: Always
---
kind: Service
"""


def key(name: str, text: str = POD) -> Location:
    """Where the first line with this key has it."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip(" -").startswith(f"{name}:"):
            return Location(file="f", line=number, column=line.index(name) + 1)
    raise LookupError(name)


@pytest.mark.parametrize(
    ("name", "indent"), [("spec", 0), ("containers", 2), ("name", 6), ("args", 6)]
)
def test_the_indentation_of_a_key(name: str, indent: int) -> None:
    assert key_indentation(POD, key(name)) == indent


def test_keys_of_flow_mappings_have_no_indentation() -> None:
    env = key("env")
    inside = Location(file="f", line=env.line, column=POD.split("\n")[env.line - 1].index("A") + 1)
    assert key_indentation(POD, inside) is None
    assert insert_beside_key(POD, inside, ["C: 1"]) is None


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("args", '      command: ["sh", "-c", "x"]'),  # behind the items at its own indentation
        ("name", "      image: vllm/vllm-openai:v0.33.0"),
        ("script", ""),  # behind the last line of the text, before the empty one
        ("env", "    - name: other"),
        ("containers", "  restartPolicy: Always"),
        ("spec", "---"),
    ],
)
def test_keys_are_added_behind_the_whole_value(name: str, before: str) -> None:
    one = insert_beside_key(POD, key(name), ["added: true"])
    assert one is not None
    done = apply_edits(POD, [one])
    lines = done.split("\n")
    at = next(i for i, line in enumerate(lines) if line.strip() == "added: true")
    assert lines[at + 1] == before
    assert lines[:at] + lines[at + 1 :] == POD.split("\n")  # nothing else has changed
    added = [path for document in yaml.safe_load_all(done) for path in _paths(document)]
    assert sum(path[-1] == "added" for path in added) == 1
    beside = next(path for path in added if path[-1] == "added")[:-1]
    assert (*beside, name) in added


def _paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from _paths(inner, (*path, name))


def test_several_lines_keep_their_own_indentation() -> None:
    text = "services:\n  vllm:\n    image: x"  # no line end at the end
    one = insert_beside_key(text, key("image", text), ["deploy:", "  replicas: 2"])
    assert one is not None
    assert apply_edits(text, [one]) == text + "\n    deploy:\n      replicas: 2"


def test_inserted_lines_end_as_the_others_do() -> None:
    text = "a: 1\r\nb: 2\r\n"
    one = insert_beside_key(text, Location(file="f", line=1, column=1), ["c: 3"])
    assert one is not None
    assert apply_edits(text, [one]) == "a: 1\r\nc: 3\r\nb: 2\r\n"
    assert (
        apply_edits(text, [insert_after_line(text, "f", 2, ["# x"], 2)])
        == f"{text[:-2]}\r\n  # x\r\n"
    )


@pytest.mark.parametrize(
    "text", ["a: {{ .Values.x }}\n  b: [\n", "base: &b {x: 1}\na: *b\n", "a: 1\n  - : b\n"]
)
def test_what_is_not_certain_is_not_inserted(text: str) -> None:
    assert insert_beside_key(text, key("a", text), ["c: 1"]) is None


def test_a_line_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no line 3"):
        insert_after_line("a\nb", "f", 3, ["c"], 0)


_yaml = st.recursive(
    st.sampled_from(["x", "two words", 7, True, None, "line\nline\n", ""]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3),
    ),
    max_leaves=12,
)


@given(
    data=st.dictionaries(st.sampled_from("abcd"), _yaml, min_size=1),
    flow=st.sampled_from([False, None]),
)
def test_a_key_added_to_any_mapping_is_the_only_change(data: dict, flow: bool | None) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow)
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.lstrip(" -")
        if stripped[1:2] != ":" or stripped[0] not in "abcd":
            continue
        place = Location(file="f", line=number, column=len(line) - len(stripped) + 1)
        one = insert_beside_key(text, place, ["added: 1"])
        if one is None:
            continue
        after = yaml.safe_load(apply_edits(text, [one]))
        assert _without_added(after) == data
        assert after != data


def _without_added(value):
    if isinstance(value, dict):
        return {k: _without_added(v) for k, v in value.items() if k != "added"}
    return [_without_added(item) for item in value] if isinstance(value, list) else value
