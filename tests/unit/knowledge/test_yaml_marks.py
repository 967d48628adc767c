"""YAML with positions: where keys stand, and what is refused with which place and remedy."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge import yaml_marks
from vllm_advisor.knowledge.yaml_marks import load_marked

TEXT = """\
# a comment
model: org/m
classes:
  - name: chat
    slo: {ttft_ms: 1000, itl_ms: 50}
  - name: long
"""


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request, monkeypatch):
    """Both parsers of PyYAML: the C one is missing where libyaml was not built in."""
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_marks, "_LOADER", getattr(yaml, request.param))


@pytest.mark.usefixtures("loader")
def test_data_is_what_yaml_reads_and_each_key_has_its_place():
    marked = load_marked(TEXT, "w.yaml")
    assert marked.data == yaml.safe_load(TEXT)
    assert marked.where(("model",)) == "w.yaml:2:1"
    assert marked.where(("classes",)) == "w.yaml:3:1"
    assert marked.where(("classes", 0)) == "w.yaml:4:5"  # the item, after its hyphen
    assert marked.where(("classes", 0, "slo")) == "w.yaml:5:5"
    # "    slo: {ttft_ms: 1000, itl_ms: 50}": itl_ms starts at character 27
    assert marked.where(("classes", 0, "slo", "itl_ms")) == "w.yaml:5:26"
    assert marked.where(("classes", 1, "name")) == "w.yaml:6:5"


@pytest.mark.usefixtures("loader")
def test_a_missing_path_falls_back_to_its_nearest_parent():
    marked = load_marked(TEXT, "w.yaml")
    assert marked.where(("classes", 1, "slo", "ttft_ms")) == "w.yaml:6:5"
    assert marked.where(("classes", 7)) == "w.yaml:3:1"
    assert marked.where(("nothing", "here")) == "w.yaml:2:1"


@pytest.mark.usefixtures("loader")
def test_columns_count_characters_not_bytes():
    marked = load_marked("größe: {höhe: 1, b: 2}\n", "w.yaml")
    assert marked.where(("größe", "b")) == "w.yaml:1:18"


def test_yaml_1_1_readings_and_a_byte_order_mark():
    text = "\ufeffa: yes\nb: 0o17\nc: 1_000\nd: ~\ne: 1.5\nf: 'x'\n"
    expected = {"a": True, "b": "0o17", "c": 1000, "d": None, "e": 1.5, "f": "x"}
    assert load_marked(text, "w.yaml").data == expected


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "where", "what", "fix"),
    [
        ("", "f:1:1", "empty", "key: value"),
        ("# only this\n", "f:1:1", "empty", "key: value"),
        ("- a\n- b\n", "f:1:1", "a list", "key: value"),
        ("model:org/m\n", "f:1:1", "one plain value", "space after each colon"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1", "'a' stands twice: here and on line 1", "remove one"),
        ("a: {x: 1, y: 2, x: 3}\n", "f:1:17", "'x' stands twice", "remove one"),
        ("a: 1\n\tb: 2\n", "f:2:1", "not YAML", "no tabs"),
        ("a:\n\tb: 2\n", "f:2:1", "not YAML", "no tabs"),
        ("model: x\nfoo\nbar: 2\n", "f:3:1", "not YAML", "with a colon"),
        ("a: b: c\n", "f:1:5", "mapping values", "quote a text"),
        ("a: [1, 2\nb: 3\n", "f:1:4", "not YAML", "close the list with ]"),
        ("a: {b: 1\n", "f:1:4", "not YAML", "close the mapping with }"),
        ("a: 'x\nb: 2\n", "f:1:4", "end of stream", "close the quote"),
        ('a: "x\\q"\n', None, "escape", "single quotes"),
        ("a: @x\n", "f:1:4", "not YAML", "in quotes"),
        ("a:\n  - x\n y: 2\n", "f:3:2", "not YAML", "alike"),
        ("a: 1\n---\nb: 2\n", "f:2:1", "second document", "'---'"),
        ("a: &x 1\nb: 2\n", "f:1:4", "(&x)", "write the value out"),
        ("a: *x\n", "f:1:4", "(*x)", "quotes"),
        ("a: !!python/object:os.system x\n", "f:1:4", "tags", "plain value"),
        ("a: ! 1\n", "f:1:4", "tags", "plain value"),
        ("<<: {a: 1}\n", "f:1:1", "merge keys", "write the keys out"),
        ("a: 1\non: 2\n", "f:2:1", "'on' is not read as text but as bool", '"on":'),
        ("a: {x: 8,192}\n", "f:1:10", "'192' is not read as text but as int", "without commas"),
        ("0.33: a\n", "f:1:1", "not read as text but as float", '"0.33":'),
        ("? [a]\n: b\n", "f:1:3", "one word", "key: value"),
        ("a: 0b_\n", "f:1:4", "looks like a number", "quotes"),
        ("a: 2024-13-45\n", "f:1:4", "looks like a number or a date", "quotes"),
        ("a: =\n", "f:1:4", "looks like", "quotes"),
        (f"a: 0x{'f' * 9000}\n", "f:1:4", "looks like a number", "quotes"),
        ("a: ok\nb: \x07\n", "f:2:4", "U+0007", "UTF-8"),
        ("a: \ud800\n", "f:1:4", "U+D800", "UTF-8"),
        ("a: " + "[" * 33 + "]" * 33, "f:1:35", "32 levels", "brackets"),
        ("%YAML 3.0\n---\na: 1\n", "f:1:1", "not YAML", ""),
    ],
)
def test_what_is_refused(text, where, what, fix):
    with pytest.raises(InputError) as caught:
        load_marked(text, "f")
    error = caught.value
    assert what in error.what
    assert fix in error.fix
    assert error.where.startswith("f:")
    if where is not None:
        assert error.where == where


def test_the_largest_file_is_read_and_a_larger_one_is_not():
    filler = "#" * (yaml_marks.MAX_CHARACTERS - len("a: 1\n"))
    assert load_marked("a: 1\n" + filler, "f").data == {"a": 1}
    with pytest.raises(InputError, match="1,000,001 characters") as caught:
        load_marked("a: 1\n" + filler + "#", "f")
    assert caught.value.where == "f"


def test_a_bomb_of_aliases_is_refused_before_it_expands():
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    with pytest.raises(InputError, match="anchors and aliases"):
        load_marked(bomb, "f")


def test_depth_is_bounded_before_anything_is_built():
    for deep in ("[" * 100_000, "{a: " * 50_000, "- " * 100_000):
        with pytest.raises(InputError, match=r"levels deep|nesting depth"):
            load_marked(deep, "f")


@settings(max_examples=100)
@given(
    st.text(alphabet=st.characters(codec=None), max_size=80)
    | st.text("ab:-[]{},&*!|>'\"\n\t #?%@0_.", max_size=60)
)
def test_no_text_breaks_it(text):
    read = _read_or_error(text)
    if isinstance(read, AdvisorError):
        assert read.what
        assert read.where.startswith("f")
    else:
        assert read.data == yaml.load(text.removeprefix("\ufeff"), Loader=yaml_marks._LOADER)  # noqa: S506


def _read_or_error(text):
    try:
        return load_marked(text, "f")
    except AdvisorError as error:
        return error


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=6), PLAIN, min_size=1, max_size=4))
def test_plain_data_comes_back_and_every_part_has_a_place(data):
    text = yaml.safe_dump(data)
    marked = _read_or_error(text)
    if isinstance(marked, AdvisorError):  # PyYAML writes equal lists as aliases
        assert "anchors" in marked.what
        return
    assert marked.data == data

    def parts(value, path):
        yield path
        items = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        )
        for key, inner in items:
            yield from parts(inner, (*path, key))

    assert set(marked.marks) == set(parts(data, ()))
