"""Reading bash: the same words bash makes, at the places they are written."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.parse.shell import Token, read_script
from vllm_advisor.types.decision import Location

BASH = shutil.which("bash")
# Each line is one simple command for bash and for us.
LINES = [
    "a b  c\t d",
    "'single $X \\n' \"double 'x' \\\"y\\\" \\\\ \\z\"",
    "con'cat'\"en\"ate\\ d",
    "--json '{\"a\": [1, 2]}'",
    "\"it's\" 'x'\\''y'",
    "$'tab\\tnew\\nq\\'x'",
    "'' \"\" a",
    "\\$HOME \\\\ \\'",
    "a#b # comment",
    "x=1 $UNSET_A end",
    'X="p q"; printf "%s\\0" $X "$X" "a${X}b"',
    'Y="p q"; printf "%s\\0" a${Y}b x$Y "y"$Y',
    'args=(--a "1 2" \'{"b": 3}\'); printf "%s\\0" "${args[@]}" end',
    'args=(a); args+=(b "c d"); printf "%s\\0" x"${args[@]}"y',
    'args=(); printf "%s\\0" "${args[@]}" end',
    'args=(a b); printf "%s\\0" "${args[@]+"${args[@]}"}" "${args[*]:-none}" | cat',
    'printf "%s\\0" "${NOPE:-a b}" ${NOPE:-a b} ${NOPE:+x} "${NOPE:-}" ${NOPE:-} z',
    'P=7; printf "%s\\0" "${P:-8}" "${P:+set}" "${P-1}" "${Q=2}"',
    'N=a; printf "%s\\0" "${M:-x-$N-${N}-y}"',
    'printf "%s\\0" a 2>/dev/null b >/dev/null c',
    'printf "%s\\0" a 2>&1 b',
    'A=1; A+=2; printf "%s\\0" "$A"',
    "a \\\n  b \\\r\n c",
]


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    "line", [line for line in LINES if "\r" not in line and "=1 $" not in line]
)
def test_words_are_those_of_bash(line: str) -> None:
    script = line if "printf" in line else f"printf '%s\\0' {line}"
    quiet = script.replace(">/dev/null c", "c")  # bash's own output has to be seen
    ran = subprocess.run([BASH or "", "-c", quiet], capture_output=True, text=True, check=True)
    expected = ran.stdout.split("\0")[:-1]
    command = read_script(script, "s").commands[0]
    words = [token.text for token in command.words]
    assert words[0] == "printf"
    assert words[2:] == expected


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20)))
def test_quoted_words_come_back(words: list[str]) -> None:
    (command,) = read_script(shlex.join(["run", *words]), "s").commands
    assert [token.text for token in command.words[1:]] == words
    assert not any(token.unresolved for token in command.words)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for command in read_script(text, "s").commands:
        assert command.words


@given(st.text("\"'$`{}()<>\\ \n#=a[@]:-+&;|", max_size=40))
def test_no_mix_of_special_characters_breaks_the_reader(text: str) -> None:
    read_script(text, "s")


def test_places() -> None:
    script = '#!/bin/bash\nargs=(\n  --a 1   # why\n  # more\n  --b "x y"\n)\nexec run \\\n  m ${args[@]}\n'
    (command,) = read_script(script, "start.sh").commands
    places = {token.text: str(token.location) for token in command.words}
    assert places == {
        "exec": "start.sh:7:1",
        "run": "start.sh:7:6",
        "m": "start.sh:8:3",
        "--a": "start.sh:3:3",
        "1": "start.sh:3:7",
        "--b": "start.sh:5:3",
        "x y": "start.sh:5:7",
    }


def test_places_of_a_script_inside_a_file() -> None:
    (command,) = read_script("run a\\\n b", "pod.yaml", line=10, column=5).commands
    assert [str(token.location) for token in command.words] == [
        "pod.yaml:10:5",
        "pod.yaml:10:9",
        "pod.yaml:11:2",
    ]


def test_environment() -> None:
    script = "export A=1 B='x y'\nC=3\nA=4\nD=5 run $C\nexport C\nrun"
    first, second = read_script(script, "s").commands
    assert {k: v.text for k, v in first.env.items()} == {"A": "4", "B": "x y", "D": "5"}
    assert [token.text for token in first.words] == ["run", "3"]
    assert {k: v.text for k, v in second.env.items()} == {"A": "4", "B": "x y", "C": "3"}
    assert str(first.env["D"].location) == "s:4:1"


def test_what_only_the_shell_knows_is_kept_and_named() -> None:
    (command,) = read_script('run "$TP" $(nproc) "a${X%.*}b" <model> `id` "$@"', "s").commands
    assert [(token.text, token.unresolved) for token in command.words[1:]] == [
        ("$TP", ("TP",)),
        ("$(nproc)", ("$(nproc)",)),
        ("a${X%.*}b", ("${X%.*}",)),
        ("<model>", ("<model>",)),
        ("`id`", ("`id`",)),
    ]


def test_commands_are_told_apart() -> None:
    script = """\
if [ -n "$X" ]; then A=1 one & fi
two && three | four; (five)
cat > file <<'EOF'
six
EOF
while true; do seven; done
function_name() { eight; }
"""
    firsts = [command.words[0].text for command in read_script(script, "s").commands]
    assert firsts == ["[", "one", "two", "three", "four", "five", "cat", "true", "seven",
                      "function_name", "eight"]  # fmt: skip


def test_a_command_says_that_it_follows_a_line_end() -> None:
    commands = read_script("one; two\n\nthree &\nfour", "s").commands
    assert [command.continues for command in commands] == [False, False, True, False]


def test_a_shell_is_started_with_variables_and_arguments() -> None:
    """Places of what comes from outside are its own; ``locate`` says those of the text."""
    here = Location(file="env", line=7)
    script = read_script(
        'export B="$A-b"; run "$@" $A',
        "f",
        locate=lambda offset: Location(file="f", line=9, column=100 + offset),
        env={"A": Token("a", here)},
        arguments=[Token("one two", here), Token("$X", here, ("X",))],
    )
    (command,) = script.commands
    assert [word.text for word in command.words] == ["run", "one two", "$X", "a"]
    assert [str(word.location) for word in command.words] == [
        "f:9:117",
        "env:7:1",
        "env:7:1",
        "f:9:126",
    ]
    assert command.words[2].unresolved == ("X",)
    assert {name: token.text for name, token in command.env.items()} == {"A": "a", "B": "a-b"}


def test_a_word_that_is_nothing_is_no_command() -> None:
    assert read_script('"$@"\n$*', "f").commands == []


def test_a_command_says_that_the_script_goes_on() -> None:
    commands = read_script("one & two && three || four &\nfive", "s").commands
    assert [command.background for command in commands] == [True, False, False, True, False]
