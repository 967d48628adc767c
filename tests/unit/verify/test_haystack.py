from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.verify.haystack import copies, longest, piece, place

NEEDLE = "<<the needle>>"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), max_size=400)


def test_a_piece_is_cut_or_repeated():
    # A copy is 3 characters and a gap of 2: 12 characters are 2 copies and 2 characters.
    assert piece("abc", 2) == "ab"
    assert piece("abc", 12) == "abc\n\nabc\n\nab"
    assert copies("abc", 12) == 3
    assert copies("abc", 3) == 1


def test_a_needle_stands_at_the_sentence_end_nearest_to_its_depth():
    # 100 sentences of 20 characters: "Sentence 00 is here." and a space; 21 x 100 = 2,100.
    text = "".join(f"Sentence {n:02} is here. " for n in range(100))
    # 50 % is character 1,050 = 21 x 50, the start of sentence 50.
    assert f"Sentence 49 is here. {NEEDLE} Sentence 50" in place(text, NEEDLE, 50)
    # 50.3 % is 1,056.3: 6 behind the start of sentence 50, 15 before the next.
    assert f"Sentence 49 is here. {NEEDLE} Sentence 50" in place(text, NEEDLE, 50.3)
    assert place(text, NEEDLE, 0) == f"{NEEDLE}\n{text}"
    assert place(text, NEEDLE, 100) == f"{text}{NEEDLE}"


def test_a_line_of_its_own_and_words_and_no_boundary_at_all():
    assert place("one\ntwo\n" * 50, NEEDLE, 50) == "one\ntwo\n" * 25 + f"{NEEDLE}\n" + (
        "one\ntwo\n" * 25
    )
    assert place("word " * 100, NEEDLE, 50) == "word " * 50 + f"{NEEDLE} " + "word " * 50
    assert place("x" * 100, NEEDLE, 50) == "x" * 50 + f" {NEEDLE} " + "x" * 50
    assert place("三。" * 100, NEEDLE, 50) == "三。" * 50 + f" {NEEDLE} " + "三。" * 50
    assert place("", NEEDLE, 50) == NEEDLE


@given(TEXTS, st.floats(0, 100))
def test_placing_loses_nothing_and_stays_near(text, depth):
    placed = place(text, NEEDLE, depth)
    before, found, after = placed.partition(NEEDLE)
    assert found
    assert placed.count(NEEDLE) == 1
    # Only one joint on each side is new.
    assert any(
        b + a == text
        for b in (before, before[:-1])
        for a in (after, after[1:])
    )  # fmt: skip
    # 2 % of the text, a rounded position and the joint.
    assert abs(len(before) - len(text) * depth / 100) <= 0.02 * len(text) + 2


@given(
    frame=st.integers(0, 200),
    ratio=st.floats(0.2, 8),
    target=st.integers(1, 200_000),
)
def test_the_longest_piece_fits_and_is_nearly_as_long_as_asked(frame, ratio, target):
    asked = []

    def count(characters: int) -> int:
        asked.append(characters)
        return frame + int(characters / ratio)

    found = longest(count, target=target)
    if frame > target:
        assert found == 0
        return
    assert count(found) <= target
    assert count(found) >= target - max(8, target // 500)
    assert len(asked) <= 16


def test_the_longest_piece_where_tokens_come_unevenly():
    # The first 1,000 characters have a token each, the others one for each ten.
    def count(characters: int) -> int:
        return min(characters, 1000) + max(0, characters - 1000) // 10

    found = longest(count, target=3000)  # 1,000 + 2,000 x 10 = 21,000 characters
    assert 2992 <= count(found) <= 3000
