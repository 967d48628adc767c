"""The picture of needles: well-formed whatever the texts are, and each field where it belongs."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.render.needle_plot import needle_svg

SVG = "{http://www.w3.org/2000/svg}"
OUTCOMES = ("hit", "miss", "refused")


def result(lengths=(4000, 8000), depths=(10, 50.5, 90), *, model="org/model", document="book.txt"):
    cells = [
        {
            "length": length,
            "depth": depth,
            "outcome": OUTCOMES[(i + j) % 3],
            "prompt_tokens": None if (i + j) % 3 == 2 else length - 20,
        }
        for i, length in enumerate(lengths)
        for j, depth in enumerate(depths)
    ]
    hits = sum(cell["outcome"] == "hit" for cell in cells)
    return {"model": model, "document": document, "cells": cells, "hits": hits}


def test_fields_and_their_words():
    root = ET.fromstring(needle_svg(result()))  # noqa: S314
    fields = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    # Two lengths of 96 from 96 on; three depths of 48 below one line of title and one of space.
    assert [(f.get("x"), f.get("y"), f.get("fill")) for f in fields] == [
        ("96", "44", "#0072b2"),
        ("96", "92", "#e69f00"),
        ("96", "140", "#cccccc"),
        ("192", "44", "#e69f00"),
        ("192", "92", "#cccccc"),
        ("192", "140", "#0072b2"),
    ]
    assert fields[0].find(f"{SVG}title").text == (
        "hit at 4,000 tokens, depth 10 % (3,980 counted by the server)"
    )
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[0] == "Needles found by org/model: 2 of 6"
    assert [t for t in texts if t in OUTCOMES] == [
        "hit",
        "miss",
        "refused",
        "miss",
        "refused",
        "hit",
    ]
    for label in (
        "4,000",
        "8,000",
        "10 %",
        "50.5 %",
        "90 %",
        "depth",
        "length of the prompt (tokens)",
    ):
        assert label in texts
    assert root.get("height") == str(44 + 3 * 48 + 64)


@given(
    model=st.text(max_size=300),
    document=st.text(max_size=50),
    lengths=st.lists(st.integers(1, 10**7), min_size=1, max_size=12, unique=True),
)
def test_any_text_is_well_formed_and_within_the_picture(model, document, lengths):
    root = ET.fromstring(needle_svg(result(lengths, model=model, document=document)))  # noqa: S314
    width, height = int(root.get("width")), int(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x"):
            assert int(rect.get("x")) + int(rect.get("width")) <= width
            assert int(rect.get("y")) + int(rect.get("height")) <= height
    for text in root.iter(f"{SVG}text"):
        assert text.text is None or text.text.isprintable()
