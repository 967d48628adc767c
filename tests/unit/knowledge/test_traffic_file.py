"""A workload with nothing but its classes."""

from __future__ import annotations

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.workloads import load_traffic, load_workload

CLASSES = """\
classes:
  - {name: chat, prompt_tokens: 900, output_tokens: 100, concurrent_requests: 40}
"""
WHOLE = f"model: Qwen/Qwen3-8B\nhardware: {{gpu: l4}}\n{CLASSES}"


def test_classes_alone_are_enough() -> None:
    found = load_traffic(CLASSES, file="t.yaml")
    assert found.model == ""
    assert [(c.name, c.where) for c in found.classes] == [("chat", "t.yaml:2")]


def test_a_whole_workload_is_read_as_one() -> None:
    assert load_traffic(WHOLE, file="w.yaml") == load_workload(WHOLE, file="w.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model: Qwen/Qwen3-8B\n" + CLASSES, "hardware"),
        (CLASSES + "prices: {}\n", "prices"),
        ("classes: []\n", "classes"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        load_traffic(text, file="t.yaml")
    assert says in f"{error.value.what} {error.value.where} {error.value.fix}"
