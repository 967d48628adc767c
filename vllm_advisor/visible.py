"""Text that a person wrote, made safe to stand on one line of a file."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""One printable line: whitespace becomes a space, other invisible characters ``\xNN``.

    Covers control characters, line separators and the bidirectional overrides that make a line
    read other than it runs.
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
