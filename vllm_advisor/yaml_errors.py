"""What is wrong with a text that is no YAML, at its place and with the remedy for the usual causes.

For every reader of YAML: those of our own files and those of what people deploy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vllm_advisor.errors import InputError

if TYPE_CHECKING:
    import yaml

# What YAML 1.1 forbids; as yaml.reader.Reader.NON_PRINTABLE has it.
_UNPRINTABLE = re.compile(
    "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
# libyaml's and PyYAML's words for a syntax error -> what to do about it; first match wins.
_HINTS = (
    ("mapping values are not allowed", "quote a text that holds ': ', and check the indentation"),
    ("expected ':'", "write the key as 'key: value', with a colon and a space"),
    ("end of stream", "close the quote or bracket that is opened here"),
    ("escape character", "use 'single quotes' around a text with backslashes"),
    ("cannot start any token", "put the value in quotes"),
    ("',' or ']'", "separate the items with commas and close the list with ]"),
    ("',' or '}'", "separate the keys with commas and close the mapping with }"),
    ("'-' indicator", "start every item of the list with '- ' at one indentation"),
    ("expected key", "indent the keys of one mapping alike"),
    ("expected <block end>", "indent the keys of one mapping alike"),
    ("nesting depth", "check the brackets: the text is nested too deep"),
)


def refuse_unprintable(text: str, file: str) -> None:
    """Refuse characters that no YAML may hold.

    Raises:
        InputError: there is one; ``where`` is its ``file:line:column``.
    """
    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1) + 1
        what = f"the character U+{ord(bad[0]):04X} is not allowed in YAML"
        raise InputError(what, where=f"{file}:{line}:{column}", fix="save the file as plain UTF-8")


def syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> InputError:
    """The parser's complaint as an error of ours."""
    problem = str(error.problem or error.context or "unreadable")
    unclosed = "end of stream" in problem or "',' or" in problem
    mark: Any = error.context_mark if unclosed and error.context_mark else error.problem_mark
    fix = next(
        (hint for words, hint in _HINTS if words in problem), "check the line and the one above"
    )
    where = file
    if mark is not None:
        where = f"{file}:{mark.line + 1}:{mark.column + 1}"
        line = [*text.splitlines(), ""][min(mark.line, len(text.splitlines()))]
        if "\t" in line[: len(line) - len(line.lstrip())]:
            fix = "indent with spaces: YAML allows no tabs"
    return InputError(f"this is not YAML: {problem}", where=where, fix=fix)
