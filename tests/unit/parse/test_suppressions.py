"""Comments that suppress findings: what they mean and which lines they speak for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.parse.suppressions import read_suppressions
from vllm_advisor.types.suppression import Suppression

SHELL = """\
#!/bin/bash
# vllm-advisor: ignore=KV001 reason="tested by hand"
# a comment between
vllm serve m \\
  --max-model-len 8192 \\
  --port 8000
vllm serve n \\
  --port 8001  # vllm-advisor: ignore=FLG001,PAR reason='a build of our own'
"""
UNIT = """\
[Service]
; vllm-advisor: ignore=KV001 reason="in systemd a semicolon begins a comment, too"
ExecStart=/usr/bin/vllm serve m \\
    --port 8000
"""
MANIFEST = """\
# vllm-advisor: ignore-file=K8S reason="a sandbox"
---
containers:
  - name: vllm
    # vllm-advisor: ignore=max-model-len-above-rope reason="short prompts only"
    args: [m,
      --port=8000]
    resources: {}  # vllm-advisor: ignore=KV001 reason="tested"
"""
DOCKERFILE = """\
# syntax=docker/dockerfile:1
FROM vllm/vllm-openai
# vllm-advisor: ignore=KV001 reason="tested"
CMD ["m", \\
  "--port=8000"]
"""


def one(text: str) -> Suppression:
    (found,) = read_suppressions(text, "f")
    return found


def covered(suppression: Suppression, text: str) -> list[int]:
    return [n for n in range(1, text.count("\n") + 1) if suppression.covers(n)]


def test_a_comment_before_a_command_speaks_for_all_of_it() -> None:
    before, behind = read_suppressions(SHELL, "serve.sh")
    assert before.names == ("KV001",)
    assert before.reason == "tested by hand"
    assert (before.location.file, before.location.line, before.location.column) == (
        "serve.sh",
        2,
        1,
    )
    assert covered(before, SHELL) == [4, 5, 6]
    assert behind.names == ("FLG001", "PAR")
    assert behind.reason == "a build of our own"
    assert (behind.location.line, behind.location.column) == (8, 16)
    assert covered(behind, SHELL) == [7, 8]


def test_units_manifests_and_dockerfiles() -> None:
    assert covered(one(UNIT), UNIT) == [3, 4]
    of_file, of_line, at_the_end = read_suppressions(MANIFEST, "f")
    assert covered(of_file, MANIFEST) == list(range(1, 9))
    assert covered(of_line, MANIFEST) == [6]
    assert covered(at_the_end, MANIFEST) == [8]
    assert covered(one(DOCKERFILE), DOCKERFILE) == [4, 5]


def test_line_ends_of_windows() -> None:
    text = '# vllm-advisor: ignore=KV001 reason="x"\r\nvllm serve m \\\r\n  --port 1\r\nls\r\n'
    found = one(text)
    assert (found.names, found.reason, found.problem) == (("KV001",), "x", "")
    assert covered(found, text) == [2, 3]


@pytest.mark.parametrize(
    ("comment", "names", "reason"),
    [
        ("#vllm-advisor:ignore=KV001", ("KV001",), ""),
        ("## vllm-advisor: ignore = KV001 , FLG  reason = 'why'", ("KV001", "FLG"), "why"),
        ('# vllm-advisor: ignore=KV001 reason="it\'s 100% = fine # really"', ("KV001",), "it's 100% = fine # really"),
        ('# vllm-advisor: ignore=KV001 reason=""', ("KV001",), ""),
        ("# vllm-advisor: ignore=KV001  # TODO", ("KV001",), ""),
    ],
)  # fmt: skip
def test_forms_that_are_read(comment: str, names: tuple[str, ...], reason: str) -> None:
    found = one(f"{comment}\nvllm serve m\n")
    assert (found.names, found.reason, found.problem) == (names, reason, "")


@pytest.mark.parametrize(
    "comment",
    [
        "# vllm-advisor: ignore",
        "# vllm-advisor: ignore=",
        "# vllm-advisor: ignore[KV001] why",
        "# vllm-advisor: ignore=KV001 reason=why",
        '# vllm-advisor: ignore=KV001 reason="why',
        "# vllm-advisor: ignore=KV001 because of this",
        "# vllm-advisor: ignore-line=KV001",
        "# vllm-advisor: disable=KV001",
    ],
)
def test_forms_that_are_not_read_are_told(comment: str) -> None:
    found = one(f"{comment}\nvllm serve m\n")
    assert found.names == ()
    assert 'reason="why it may stay"' in found.problem


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('ls\n# vllm-advisor: ignore-file=KV001 reason="x"\nls\n', "at the top"),
        ('ls\n# vllm-advisor: ignore=KV001 reason="x"\n', "no line comes after"),
        ('# vllm-advisor: ignore=KV001 reason="x"\n\nls\n', "no line comes after"),
    ],
)
def test_misplaced_comments_are_told(text: str, says: str) -> None:
    assert says in one(text).problem


@pytest.mark.parametrize(
    "text",
    [
        "echo vllm-advisor: ignore=KV001",
        "vllm-advisor check serve.sh",
        "echo x#vllm-advisor: ignore=KV001",  # no comment in a shell
        "ls ; vllm-advisor: ignore=KV001",  # a semicolon begins one at the start of a line only
    ],
)
def test_what_is_no_comment(text: str) -> None:
    assert read_suppressions(text, "f") == ()


@given(
    lines=st.lists(
        st.sampled_from(
            [
                "",
                "ls",
                "ls \\",
                "# c",
                "# c \\",
                '# vllm-advisor: ignore=KV001 reason="x"',
                'ls # vllm-advisor: ignore=KV001 reason="x"',
                '# vllm-advisor: ignore-file=KV001 reason="x"',
            ]
        ),
        max_size=8,
    )
)
def test_every_comment_is_found_and_speaks_for_lines_around_it(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = read_suppressions(text, "f")
    marked = [number for number, line in enumerate(lines, 1) if "vllm-advisor" in line]
    assert [s.location.line for s in found] == marked
    for suppression in found:
        here = suppression.location.line
        spoken_for = [n for n in range(1, len(lines) + 1) if suppression.covers(n)]
        if suppression.problem or suppression.last_line is None:
            continue
        assert spoken_for == list(range(suppression.first_line, suppression.last_line + 1))
        own_line = lines[here - 1].startswith("#")
        assert spoken_for[0] > here if own_line else here in spoken_for
        # All but the last line of a command go on; nothing but comments stands before it.
        assert all(lines[n - 1].endswith("\\") for n in spoken_for[:-1])
        between = lines[here : spoken_for[0] - 1] if own_line else []
        assert all(line.startswith("#") for line in between)
