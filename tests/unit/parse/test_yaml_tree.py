"""YAML as other tools take it: what is read, and the place of every value and character."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError
from vllm_advisor.parse.yaml_tree import MAX_VALUES, YamlDocument, load_yaml

TEXT = """\
base: &base {image: one, env: [A, "B C"]}
server:
  <<: *base
  image: two
  script: |-  # runs it
     vllm serve m \\
       --max-model-len 8192

     echo done
  folded: >
    aa bb
    cc

    dd
  quoted: "x \\
     y\\tz \\"q\\" \\u00e9"
  single: 'it''s
    ok'
  plain: many words
    on two lines
"""


def only(text: str) -> YamlDocument:
    (document,) = load_yaml(text, "f.yaml")
    return document


def at(text: str, line: int, column: int) -> str:
    return text.split("\n")[line - 1][column - 1]


def test_values_are_those_of_yaml() -> None:
    assert only(TEXT).data == yaml.safe_load(TEXT)


@pytest.mark.parametrize("key", ["script", "folded", "quoted", "single", "plain", "image"])
def test_each_letter_stands_where_it_says(key: str) -> None:
    text = only(TEXT).root.at("server", key).placed_text()
    assert text is not None
    letters = [(i, c) for i, c in enumerate(text.text) if c.isascii() and c.isalnum()]
    assert letters
    for offset, letter in letters:
        place = text.locate(offset)
        assert at(TEXT, place.line, place.column) == letter


def test_a_merged_value_stands_where_its_anchor_is_written() -> None:
    server = only(TEXT).root.at("server")
    assert str(server.at("env", 1).location) == "f.yaml:1:35"
    assert str(server.at("image").location) == "f.yaml:4:3"
    assert str(server.at("image").value_location) == "f.yaml:4:10"
    assert str(server.at("absent", "too").location) == "f.yaml:2:1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: {b: 1}\nc:\n  <<: [{x: 1}, {x: 2, y: 3}]\n  y: 4\n", {"x": 1, "y": 4}),
        ("c: {on: yes, 1: 1:30, d: 2024-01-01}\n", {"on": True, "1": "1:30", "d": "2024-01-01"}),
        ("c: !secret x\n", "x"),
        ("c: [0.90, 1e3, 0x10, ~, '7']\n", [0.9, "1e3", 16, None, "7"]),
        ("c: {? [a] : 1}\n", {"?": 1}),
        ("\ufeffc: 1\n", 1),
    ],
)
def test_what_people_write(text: str, value: Any) -> None:
    assert only(text).root.at("c").value == value


def test_several_documents_and_empty_ones() -> None:
    documents = load_yaml("# nothing\n---\na: 1\n---\n---\n- b\n", "f.yaml")
    assert [d.data for d in documents] == [{"a": 1}, ["b"]]
    assert str(documents[1].root.at(0).location) == "f.yaml:6:3"


def test_a_key_that_stands_twice_is_told() -> None:
    document = only("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert document.data == {"a": 3, "b": {"c": 2}}
    assert [(r.value, r.location.line) for r in document.repeated] == [("c", 2), ("a", 3)]


def test_a_merge_is_no_repetition() -> None:
    document = only("x: &x {a: 1}\ny: {<<: *x, a: 2}\n")
    assert document.repeated == ()
    assert document.data["y"] == {"a": 2}


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        refs = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{refs}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (bomb(9), "once its aliases are followed"),
        ("a: &a [*a]", "levels deep"),
        ("&m {<<: *m}", "levels deep"),
        ("[" * 90_000, "this is not YAML"),
        ("- " * 90_000, "this is not YAML"),
        (f"{'[' * 150}1{']' * 150}", "levels deep"),
        ("a: [1, 2", "this is not YAML"),
        ("a: *b", "this is not YAML"),
        ("a: \x07", "not allowed in YAML"),
        ("a: \ud800", "not allowed in YAML"),
        ("\ta: 1", "this is not YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(text: str, what: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError, match=what) as refused:
        load_yaml(text, "f.yaml")
    assert refused.value.where.startswith("f.yaml:")
    assert time.process_time() - started < 5
    assert MAX_VALUES < 9**9


def test_aliases_are_followed_as_far_as_files_use_them() -> None:
    text = "\n".join(["e: &e {a: 1, b: [2, 3]}", *(f"s{n}: {{env: *e}}" for n in range(500))])
    assert only(text).root.at("s499", "env", "b", 1).value == 3


LEAVES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    ["", "a\nb", "  lead", "trail \n", "it's", '"q"', "a: b", "# c", "\n\n x\n", "é\u2028z", "\\n"]
)
TREES = st.recursive(
    LEAVES | st.integers() | st.booleans() | st.none(),
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.text("abcxyz", min_size=1), below, max_size=4)
    ),
    max_leaves=12,
)


@given(
    tree=st.dictionaries(st.text("abcxyz", min_size=1), TREES, min_size=1, max_size=4),
    style=st.sampled_from([None, '"', "'", "|", ">"]),
    flow=st.sampled_from([True, False, None]),
)
def test_any_tree_and_style_keeps_values_and_places(tree: Any, style: Any, flow: Any) -> None:
    """Values as PyYAML has them; every letter of a text is at the place that is said."""
    written = yaml.safe_dump(
        tree, default_style=style, default_flow_style=flow, allow_unicode=True, width=20
    )
    expected = yaml.safe_load(written)
    document = only(written)
    assert document.data == expected
    lines = written.splitlines()
    for path in document.marks:
        text = document.root.at(*path).placed_text()
        for offset, letter in enumerate(text.text if text else ""):
            if text and letter.isascii() and letter.isalpha() and len(written.split("\\")) == 1:
                place = text.locate(offset)
                assert lines[place.line - 1][place.column - 1] == letter
