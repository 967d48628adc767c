from __future__ import annotations

import itertools

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.verify.question import NEEDLE, NeedleTexts, cell_code, check_unknown


def test_each_cell_has_its_own_code_each_time():
    cells = list(itertools.product((0, 10, 12.5, 50, 90), (1000, 4000, 32_768, 131_008)))
    codes = {cell_code(depth=depth, length=length) for depth, length in cells}
    assert len(codes) == len(cells)
    # sha256(b"50 % of 4000") begins 59 47 2d b9 1e ed 81 a3. Modulo 20 the first four are
    # 9, 11, 5, 5: M, P, H, H. 0x1eed81a3 is 518,881,699, modulo 10,000 1,699.
    assert cell_code(depth=50, length=4000) == "MPHH-1699"
    assert cell_code(depth=50.0, length=4000) == "MPHH-1699"


def test_texts_of_ones_own():
    texts = NeedleTexts.of(needle="The door says {code}.", question="What does the door say?")
    needle = texts.at(depth=10, length=100)
    code = cell_code(depth=10, length=100)
    assert needle.sentence == f"The door says {code}."
    assert needle.expect == code
    fixed = NeedleTexts.of(needle="It is on Monday.", question="When?", expect="monday")
    assert fixed.at(depth=1, length=1).is_found("On  MONDAY, I think.")
    assert not fixed.at(depth=1, length=1).is_found("On Tuesday.")
    assert NeedleTexts.of().needle == NEEDLE


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"needle": "It is on Monday.", "question": "When?"}, "--needle"),
        ({"needle": "The door says {code}."}, "--needle"),
        ({"question": "  "}, "--question"),
        ({"expect": ""}, "--expect"),
        ({"needle": "a \udcff {code}", "question": "What?"}, "--needle"),
    ],
)
def test_texts_that_cannot_be_used(given, where):
    with pytest.raises(InputError) as caught:
        NeedleTexts.of(**given)
    assert caught.value.where == where
    assert caught.value.fix


def test_the_answer_stands_nowhere_else():
    needle = NeedleTexts.of(needle="On Monday.", question="When?", expect="Monday")
    check_unknown([needle.at(depth=1, length=1)], "Nothing here.")
    with pytest.raises(InputError, match="document holds 'Monday' already"):
        check_unknown([needle.at(depth=1, length=1)], "It was a blue MONDAY.")
    asked = NeedleTexts.of(needle="On Monday.", question="On Monday or when?", expect="Monday")
    with pytest.raises(InputError, match="question holds"):
        check_unknown([asked.at(depth=1, length=1)], "Nothing here.")
