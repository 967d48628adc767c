import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from vllm_advisor.render.jinja import (
    comment,
    environment,
    number,
    quantity,
    shell_word,
    to_yaml,
)
from vllm_advisor.render.markdown_text import code_block, code_span, markdown
from vllm_advisor.visible import visible

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "|`*_[]<>&~$\\-+#=1.) \n\t\x1b:'\"{}ab"
)


@given(TEXT)
def test_a_comment_stays_a_comment(text):
    assert all(line.startswith("  #") for line in comment(text, 2).split("\n"))
    assert all(c == "\n" or c.isprintable() for c in comment(text, 2))


def test_a_comment_wraps_at_88_columns_and_never_inside_a_word():
    lines = comment("word " * 40 + "x" * 100).split("\n")
    # 17 words of 4 letters with their 16 spaces take 84 columns, "# " two more: 86 <= 88 < 91.
    assert lines == ["# " + " ".join(["word"] * 17)] * 2 + [
        "# " + " ".join(["word"] * 6),
        "# " + "x" * 100,
    ]


def test_a_comment_shows_what_would_hide():
    assert comment("a\r\nrm -rf ~\x1b[2K\u202eb") == "# a  rm -rf ~\\x1b[2K\\u202eb"
    assert comment("", 2) == "  #"


@given(TEXT)
def test_a_shell_word_is_one_word(text):
    assert shlex.split(shell_word(text)) == [text]


@given(
    TEXT
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_a_yaml_scalar_is_one_line_that_reads_back_the_same(value):
    text = to_yaml(value)
    assert "\n" not in text
    assert yaml.safe_load(f"key: {text}\nnext: 1\n") == {"key": value, "next": 1}


@pytest.mark.parametrize(
    "text", ["yes", "null", "1e3", "12345e67", "0o17", "12:30", "~", "- a", "a: b", "{{ x }}", ""]
)
def test_text_is_always_quoted_in_yaml(text):
    assert to_yaml(text) == f'"{text}"'


def _inline(source):
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source)
    return [token for token in tokens if token.type == "inline"], tokens


@given(TEXT)
def test_markdown_text_is_only_text(text):
    shown = " ".join(visible(text).split())
    for source, at in (
        (f"| a | b |\n|---|---|\n| {markdown(text)} | z |\n", 2),
        (f"- {markdown(text)}\n", 0),
    ):
        inlines, tokens = _inline(source)
        if not shown and at == 0:
            continue
        children = inlines[at].children or []
        assert {child.type for child in children} <= {"text", "text_special"}
        assert " ".join("".join(child.content for child in children).split()) == shown
        assert not [
            t
            for t in tokens
            if t.type
            in ("html_block", "heading_open", "ordered_list_open", "hr", "fence", "code_block")
        ]
        assert len([t for t in tokens if t.type == "bullet_list_open"]) <= 1


def test_markdown_text_stays_readable():
    assert markdown("gpu_memory_utilization 0.9 (TP=2)") == "gpu_memory_utilization 0.9 (TP=2)"
    assert markdown("1. a|b_ <b>") == "1\\. a\\|b\\_ \\<b\\>"


@given(TEXT)
def test_a_code_span_shows_its_text(text):
    shown = visible(text).strip()
    inlines, _ = _inline(f"x {code_span(text)}\n")
    children = inlines[0].children or []
    if shown:
        assert [(c.type, c.content) for c in children] == [("text", "x "), ("code_inline", shown)]


@given(TEXT)
def test_a_code_block_cannot_be_left(text):
    tokens = MarkdownIt("commonmark").parse(code_block(text, "bash") + "\n\nafter\n")
    assert [t.type for t in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_numbers_for_people():
    assert number(1234567) == "1,234,567"
    assert number(6.625) == "6.62"
    assert number(0.00005) == "0.00005"
    assert number(0.0002153123) == "0.0002153"
    assert number(0.0) == "0.00"
    assert number(None) == "unknown"
    assert quantity(3 << 30, "bytes") == "3.00 GiB"
    assert quantity(12, "requests") == "12 requests"


def test_a_misspelled_name_in_a_template_is_an_error():
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()
