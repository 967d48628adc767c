"""The words after ``vllm serve`` -> flags and values, in the way of argparse and vLLM's own parser.

See vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser.parse_args for what vLLM does
before argparse: underscores, dotted JSON keys, ``-O3`` and ``--model``.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, NamedTuple

from vllm_advisor.parse.dotted_keys import take_dotted_keys
from vllm_advisor.parse.flag_edits import boolean_edits, choice_edits
from vllm_advisor.parse.flag_values import ValueRefusedError, read_value
from vllm_advisor.parse.prepared_words import as_argparse_gets
from vllm_advisor.parse.remarks import Note, Problem, UnknownFlag, Unresolved
from vllm_advisor.parse.shell import Token
from vllm_advisor.types.decision import Location
from vllm_advisor.types.engine import EngineArg, EngineFacts, Flag

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")  # argparse takes these for values
_FALSE_WORDS = frozenset(("false", "no", "off", "0"))
_TRUE_WORDS = frozenset(("true", "yes", "on", "1"))
_HELP = ("-h", "--help")
_LOOKED_UP, _LONGEST_NAME = 50, 100  # unknown flags for which close ones are told
_MODEL = "model"


class _Match(NamedTuple):
    spelling: str
    value: str | None  # after "=", or glued to a short flag


class FlagReader:
    """Reads one command; the results are its attributes.

    Args:
        engine: flags of the vLLM version.
        serve: ``vllm serve``; ``False`` for the older module, which ignores a positional model.
        complete: the words are a whole command; ``False`` if the model may be elsewhere.
    """

    def __init__(self, engine: EngineFacts, *, serve: bool, complete: bool) -> None:
        self._serve = serve
        self._parsing = engine.parsing
        self._complete = complete
        self._default_model = engine.flags[_MODEL].default if _MODEL in engine.flags else ""
        self._flags = {
            spelling: flag
            for flag in engine.flags.values()
            for spelling in (*flag.spellings, *flag.negations)
        }
        self._positionals: list[Token] = []
        self._dotted: frozenset[str] = frozenset()
        self._model_word = False
        self.model = ""
        self.model_location = Location(file="", line=1)
        self.arguments: dict[str, EngineArg] = {}
        self.unknown: list[UnknownFlag] = []
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self.unresolved: list[Unresolved] = []

    def read(self, tokens: list[Token], where: Location) -> None:
        """Read the words after the command; ``where`` is the command's place."""
        self._model_word = any(token.text == "--model" for token in tokens)
        words = as_argparse_gets(tokens, self._parsing)
        dotted = take_dotted_keys(words, self._flags, self._parsing)
        self.arguments.update(dotted.objects)
        self._dotted = frozenset(dotted.objects)
        self.problems += dotted.problems
        self.notes += dotted.notes
        self.unresolved += dotted.unresolved
        words = dotted.rest
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            if word.text == "--":
                self._positionals += words[index:]
                break
            if not self._is_flag(word):
                self._positionals.append(word)
                continue
            end = index
            while end < len(words) and words[end].text != "--" and not self._is_flag(words[end]):
                end += 1
            index += self._option(word, words[index:end])
        self._settle_model(where)

    def _is_flag(self, token: Token) -> bool:
        """Whether argparse takes a word for an option rather than for a value."""
        text = token.text
        if not text.startswith("-") or text == "-":
            return False
        if self._matches(text):
            return True
        return _NEGATIVE_NUMBER.fullmatch(text) is None and " " not in text

    def _matches(self, text: str) -> list[_Match]:
        """Option strings a word can stand for: itself, or what it abbreviates."""
        if text in self._flags or text in _HELP:
            return [_Match(text, None)]
        name, equals, value = text.partition("=")
        explicit = value if equals else None
        if name in self._flags:
            return [_Match(name, explicit)]
        if text.startswith("--"):
            known = (*self._flags, *_HELP)
            return [_Match(s, explicit) for s in known if s.startswith(name)]
        found = [_Match(s, None) for s in self._flags if s.startswith(text)]
        return [*found, _Match(text[:2], text[2:])] if text[:2] in self._flags else found

    def _option(self, token: Token, following: list[Token]) -> int:
        """Read one flag; returns how many of the words after it belong to it."""
        matches = self._matches(token.text)
        if not matches:
            return self._unknown(token, following)
        if len(matches) > 1:
            names = ", ".join(sorted(match.spelling for match in matches))
            says = f"{token.text} can be any of {names}"
            self.problems.append(
                Problem(says, token.location, "ambiguous-flag", "write one of them out")
            )
            return min(len(following), 1)
        spelling, value = matches[0]
        if spelling in _HELP:
            self.notes.append(Note(f"{spelling} prints help and starts nothing", token.location))
            return 0
        name = token.text.partition("=")[0]
        if name.startswith("--") and name != spelling:
            self.notes.append(Note(f"{name} is short for {spelling}", token.location))
        flag = self._flags[spelling]
        if flag.deprecated:
            self.notes.append(Note(f"{spelling}: {flag.deprecated}", token.location))
        if flag.kind == "bool" and flag.nargs is None:
            return self._boolean(token, matches[0], following)
        if value is not None:
            self._values(token, spelling, [token._replace(text=value)])
            return 0
        taken = following if flag.nargs in ("+", "*") else following[:1]
        self._values(token, spelling, taken)
        return len(taken)

    def _boolean(self, token: Token, match: _Match, following: list[Token]) -> int:
        """A flag without a value; one that is given a value is refused."""
        flag = self._flags[match.spelling]
        value, taken = match.value, 0
        if value is None and following and following[0].text.lower() in _FALSE_WORDS | _TRUE_WORDS:
            value, taken = following[0].text, 1
        if value is None:
            self._set(flag, match.spelling not in flag.negations, token)
            return taken
        fix, instead = f"write {match.spelling} alone", match.spelling
        if value.lower() in _FALSE_WORDS:
            opposite = flag.spellings if match.spelling in flag.negations else flag.negations
            fix = f"write {opposite[0]}" if opposite else f"leave out {match.spelling}"
            instead = opposite[0] if opposite else ""
        says = f"{match.spelling} takes no value, vLLM refuses {value!r}"
        edits = boolean_edits(token, following[:taken], value, instead)
        self.problems.append(
            Problem(says, token.location, "boolean-with-value", fix, flag.dest, edits=edits)
        )
        return taken

    def _values(self, token: Token, spelling: str, sources: list[Token]) -> None:
        flag = self._flags[spelling]
        if not sources:
            if flag.nargs in ("?", "*"):
                self._set(flag, True if flag.nargs == "?" else [], token)
            else:
                says = f"{spelling} has no value"
                self.problems.append(Problem(says, token.location, "missing-value", "", flag.dest))
            return
        unresolved = [source for source in sources if source.unresolved]
        if unresolved:
            text = " ".join(source.text for source in sources)
            self.unresolved.append(Unresolved(flag.dest, text, unresolved[0].location))
            return
        values = []
        for source in sources:
            try:
                values.append(self._value(flag, source))
            except ValueRefusedError as no:
                place = source.location
                edits = choice_edits(flag, source, token)
                fix = f"write {edits[0].new}" if edits else no.fix
                self.problems.append(
                    Problem(no.message, place, no.code, fix, flag.dest, source.text, edits)
                )
                if no.value is not None:
                    values.append(no.value)
        if len(values) == len(sources):
            self._set(flag, values if flag.nargs in ("+", "*") else values[0], sources[0])

    def _value(self, flag: Flag, source: Token) -> Any:
        """One value, as the version reads it."""
        if flag.kind is None:
            says = f"how vLLM reads {flag.spellings[0]} {source.text} is not recorded"
            self.notes.append(Note(says, source.location))
            return source.text
        return read_value(flag, source.text, suffixes=self._parsing.number_suffixes)

    def _set(self, flag: Flag, value: Any, token: Token) -> None:
        before = self.arguments.pop(flag.dest, None)
        if before is not None and flag.dest in self._dotted:
            says = f"{flag.spellings[0]}: keys given with dots replace this whole object"
            self.notes.append(Note(says, token.location))
            value = before.value
        elif flag.nargs is None and flag.kind == "str" and isinstance(flag.default, list):
            value = [*(before.value if before else ()), value]  # argparse's append
        elif before is not None:
            says = f"{flag.spellings[0]} is given twice; the last one counts"
            self.notes.append(Note(says, token.location))
        self.arguments[flag.dest] = EngineArg(dest=flag.dest, value=value, origin=token.location)

    def _unknown(self, token: Token, following: list[Token]) -> int:
        """Record an unknown flag; the words after it count as its values, but not the model."""
        values = following
        if self._serve and not self._positionals:
            values = [word for word in following[:1] if "/" not in word.text]
        name = token.text.partition("=")[0]
        close: list[str] = []
        if len(self.unknown) < _LOOKED_UP and len(name) < _LONGEST_NAME:  # looking takes a while
            close = difflib.get_close_matches(name, [s for s in self._flags if s[:2] == "--"], n=3)
        texts = tuple(word.text for word in values)
        self.unknown.append(UnknownFlag(token.text, token.location, tuple(close), texts))
        return len(values)

    def _settle_model(self, where: Location) -> None:
        """Find the model among the positional words and ``--model``."""
        given = self.arguments.pop(_MODEL, None)
        placeholder = next((u for u in self.unresolved if u.dest == _MODEL), None)
        positionals = [p for p in self._positionals if not self._two_words_in_one(p)]
        if given is not None or placeholder is not None:
            self.model = given.value if given else placeholder.text if placeholder else ""
            origin = given.origin if given else placeholder.location if placeholder else where
            self.model_location = origin if isinstance(origin, Location) else where
            if self._serve and self._model_word and not self._parsing.model_flag:
                says = "vllm serve takes the model as its first word and refuses --model"
                place, fix = self.model_location, f"vllm serve {self.model}"
                self.problems.append(Problem(says, place, "model-flag-with-serve", fix, _MODEL))
            elif self._serve:
                says = "vllm serve takes the model as its first word; --model will be removed"
                self.notes.append(Note(says, self.model_location))
        elif positionals:
            first = positionals[0]
            self.model, self.model_location = first.text, first.location
            if first.unresolved:
                self.unresolved.append(Unresolved(_MODEL, first.text, first.location))
            if not self._serve:
                says = (
                    f"the API server module ignores the positional {first.text} "
                    f"and serves its default, {self._default_model}"
                )
                code = "positional-model-with-api-server"
                fix = f"vllm serve {first.text}, or --model {first.text}"
                self.problems.append(Problem(says, first.location, code, fix, _MODEL))
            positionals = positionals[1:]
        else:
            self._no_model(where)
        for extra in positionals:
            if extra.unresolved:  # may stand for flags, or for nothing
                self.unresolved.append(Unresolved("", extra.text, extra.location))
                continue
            says = f"{extra.text} belongs to no flag, and the model is {self.model}"
            self.problems.append(Problem(says, extra.location, "extra-argument"))

    def _no_model(self, where: Location) -> None:
        self.model_location = where
        if not self._complete:
            return
        if "config" in self.arguments:
            self.notes.append(Note("the model is in the file of --config", where))
            return
        self.model = self._default_model
        says = f"no model is named; vLLM serves its default, {self._default_model}"
        needs_model = self._parsing.name_needs_model and "served_model_name" in self.arguments
        if self._serve and needs_model:
            says = "--served-model-name needs a model before it"
            self.problems.append(Problem(says, where, "missing-model", "vllm serve MODEL", _MODEL))
        else:
            self.notes.append(Note(says, where))

    def _two_words_in_one(self, token: Token) -> bool:
        """``"--port 8000"`` as one word is no flag to argparse."""
        name, blank, _ = token.text.partition(" ")
        if not blank or not name.startswith("-"):
            return False
        says = f"{token.text!r} is one word; vLLM does not see the flag in it"
        fix = "give the flag and its value as two words (two list items)"
        self.problems.append(
            Problem(says, token.location, "flag-and-value-in-one-word", fix, self._dest(name))
        )
        return True

    def _dest(self, spelling: str) -> str | None:
        flag = self._flags.get(spelling)
        return flag.dest if flag else None
