"""What the reader of a command has to say about it, each with its place."""

from __future__ import annotations

from typing import NamedTuple

from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit


class Problem(NamedTuple):
    """Something vLLM refuses, ignores or takes for something else.

    ``code`` is one of ``ambiguous-flag``, ``args-as-one-string``, ``boolean-with-value``,
    ``command-as-one-string``, ``dotted-key``, ``entrypoint-repeated``, ``extra-argument``,
    ``flag-and-value-in-one-word``, ``invalid-choice``, ``invalid-value``,
    ``json-double-braces``, ``json-embedded-quotes``, ``json-invalid``, ``json-unknown-key``,
    ``json-unquoted``, ``line-continuation-missing``, ``list-as-comma-string``, ``missing-model``,
    ``missing-value``, ``model-flag-with-serve``, ``positional-model-with-api-server``,
    ``wrong-entrypoint``. ``dest`` is the flag's, where it is about one, and ``value`` what it was
    given, where that is refused. ``edits`` make what ``fix`` says, where its meaning is certain.
    """

    message: str
    location: Location
    code: str = ""
    fix: str = ""
    dest: str | None = None
    value: str = ""
    edits: tuple[Edit, ...] = ()


class UnknownFlag(NamedTuple):
    """A word that looks like a flag and is none of this version; ``values`` are the words after."""

    token: str
    location: Location
    close: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


class Note(NamedTuple):
    """Something accepted that a reader may not expect."""

    message: str
    location: Location


class Unresolved(NamedTuple):
    """A value that only the shell knows.

    ``dest`` is the flag's, ``model`` for the model, empty for a word that may be anything.
    """

    dest: str
    text: str
    location: Location
