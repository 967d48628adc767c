"""The needle, the question that asks for it, and what counts as finding it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from vllm_advisor.errors import InputError

PLACEHOLDER = "{code}"
NEEDLE = "The reference number of the blue folder is {code}."
QUESTION = "What is the reference number of the blue folder? Answer with the number only."
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # without vowels: no word comes out


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """One cell's sentence, its question, and the text an answer has to hold."""

    sentence: str
    question: str
    expect: str

    def prompt(self, haystack: str) -> str:
        """What the model is sent, around a haystack that holds the sentence."""
        return (
            "Read the document, then answer the question after it.\n\n"
            f"<document>\n{haystack}\n</document>\n\n{self.question}"
        )

    def is_found(self, answer: str) -> bool:
        """Whether the answer holds what is expected; case and line breaks do not matter."""
        return _folded(self.expect) in _folded(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleTexts:
    """The texts as a person gave them, with :data:`PLACEHOLDER` where each cell has its code."""

    needle: str
    question: str
    expect: str

    @classmethod
    def of(
        cls, *, needle: str | None = None, question: str | None = None, expect: str | None = None
    ) -> NeedleTexts:
        """Texts with the neutral sentence where none is given.

        Raises:
            InputError: a needle has no question, or nothing that is expected.
        """
        if needle is not None and question is None:
            raise InputError(
                "a needle of your own has no question",
                where="--needle",
                fix="--question 'What ...?' asks for it",
            )
        if expect is None and PLACEHOLDER not in (needle or NEEDLE):
            raise InputError(
                f"the needle has no {PLACEHOLDER} and nothing is expected",
                where="--needle",
                fix="--expect TEXT, the text a right answer holds",
            )
        texts = {
            "--needle": NEEDLE if needle is None else needle,
            "--question": QUESTION if question is None else question,
            "--expect": PLACEHOLDER if expect is None else expect,
        }
        for option, text in texts.items():
            if not text.strip():
                raise InputError("the text is empty", where=option, fix="give some text")
            _check_utf8(text, option)
        return cls(needle=texts["--needle"], question=texts["--question"], expect=texts["--expect"])

    def at(self, *, depth: float, length: int) -> Needle:
        """The needle of one cell."""
        code = cell_code(depth=depth, length=length)
        return Needle(
            sentence=self.needle.replace(PLACEHOLDER, code),
            question=self.question.replace(PLACEHOLDER, code),
            expect=self.expect.replace(PLACEHOLDER, code),
        )


def cell_code(*, depth: float, length: int) -> str:
    """A code such as ``XKDM-4827``: the same for one cell each time, another for each cell."""
    digest = hashlib.sha256(f"{depth:g} % of {length}".encode()).digest()
    letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:4])
    return f"{letters}-{int.from_bytes(digest[4:8]) % 10_000:04d}"


def check_unknown(needles: Iterable[Needle], document: str) -> None:
    """That only the needle tells the answer.

    Raises:
        InputError: the document or the question holds it already.
    """
    text = _folded(document)
    for needle in needles:
        expected = _folded(needle.expect)
        for where, held in (("document", text), ("question", _folded(needle.question))):
            if expected in held:
                raise InputError(
                    f"the {where} holds {needle.expect!r} already: a right answer would prove "
                    "nothing",
                    where="--expect",
                    fix="choose a needle whose answer stands nowhere else",
                )


def _check_utf8(text: str, option: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("the text is not UTF-8", where=option, fix="write it as UTF-8") from None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
