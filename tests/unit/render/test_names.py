"""Names and labels of objects: valid for the API server whatever the plan is called."""

import re
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.render.names import LONGEST_NAME, label_value, object_name

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def name(plan, instance, longest=LONGEST_NAME):
    return object_name(SimpleNamespace(name=plan), SimpleNamespace(name=instance), longest)


def test_a_short_name_stays_as_it_is():
    assert name("contract-review", "chat") == "contract-review-chat"


def test_a_long_name_is_cut_and_stays_its_own():
    first, second = name("a" * 40, "b" * 39), name("a" * 40, "b" * 40)
    assert len(first) == len(second) == LONGEST_NAME
    assert first != second


def test_what_is_replaced_does_not_make_two_names_one():
    assert name("a_b", "c") != name("a-b", "c")


@given(plan=st.text(max_size=80), instance=st.text(max_size=80), longest=st.integers(16, 63))
def test_every_name_is_a_dns_label_that_starts_with_a_letter(plan, instance, longest):
    made = name(plan, instance, longest)
    assert NAME.fullmatch(made)
    assert len(made) <= longest


@given(st.text(max_size=200))
def test_every_label_value_is_allowed(text):
    assert LABEL.fullmatch(label_value(text))
    assert len(label_value(text)) <= 63
