"""The arguments of an instance as the words of a ``vllm serve`` command."""

from __future__ import annotations

import json
import shlex
from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineArg, EngineFacts, Flag
from vllm_advisor.types.plan import Instance


def serve_argv(instance: Instance, engine: EngineFacts) -> list[str]:
    """What follows ``vllm serve``: the model, then every argument in its order.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    argv = [model_word(instance)]
    for arg in instance.engine_args:
        argv += flag_words(arg, engine)
    return argv


def serve_command(instance: Instance, engine: EngineFacts) -> str:
    """The whole command on one line, quoted for a shell.

    Raises:
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    return shlex.join(["vllm", "serve", *serve_argv(instance, engine)])


def model_word(instance: Instance) -> str:
    """The model, as ``vllm serve`` takes it: first and without a flag.

    Raises:
        OutputError: a parser would take the model for a flag.
    """
    model = instance.engine_args.model
    if not model or model.startswith("-"):
        raise OutputError(
            f"the model {model!r} would be read as a flag of vllm serve",
            where=f"instance {instance.name}",
            fix="write a folder that starts with a dash as ./-folder",
        )
    return _checked(model, "the model")


def flag_words(arg: EngineArg, engine: EngineFacts) -> list[str]:
    """One argument as words: ``--flag``, ``--no-flag``, ``--flag value`` or ``--flag a b``.

    Raises:
        OutputError: the flag does not exist, or its value cannot be written.
    """
    flag = engine.flags.get(arg.dest)
    if flag is None:
        raise _unwritable(arg, f"vLLM {engine.version} has no such flag")
    if flag.kind == "bool":
        return [_switch(arg, flag)]
    spelling = flag_spelling(flag)
    value = arg.value
    if value is True and flag.nargs == "?":
        return [spelling]
    if value is None or isinstance(value, bool):
        raise _unwritable(arg, f"{spelling} takes a {flag.kind}")
    if isinstance(value, list | tuple) and not flag.takes_object:
        return _several(arg, flag, spelling)
    return _pair(spelling, _word(value, flag))


def json_arg(value: Any) -> str:
    """A value as the one JSON word that a flag takes; quote it for where it stands."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def flag_spelling(flag: Flag) -> str:
    """The long spelling that carries the dest's own name, or the first long one."""
    kebab = "--" + flag.dest.replace("_", "-")
    if kebab in flag.spellings:
        return kebab
    return next((s for s in flag.spellings if s.startswith("--")), flag.spellings[0])


def _switch(arg: EngineArg, flag: Flag) -> str:
    if not isinstance(arg.value, bool):
        raise _unwritable(arg, "the flag is a switch")
    names = flag.spellings if arg.value else flag.negations
    if not names:
        raise _unwritable(arg, "this vLLM has no spelling for that; leave the flag out")
    if arg.value:
        return flag_spelling(flag)
    return next((name for name in names if name.startswith("--no-")), names[0])


def _several(arg: EngineArg, flag: Flag, spelling: str) -> list[str]:
    words = [_word(item, flag) for item in arg.value]
    if not words:
        raise _unwritable(arg, "an empty list cannot be written; leave the flag out")
    if flag.nargs in ("+", "*"):
        dashed = next((w for w in words if w.startswith("-") and not _is_number(w)), None)
        if dashed is not None and len(words) > 1:
            raise _unwritable(arg, f"{dashed!r} would be read as a flag")
        return _pair(spelling, words[0]) if len(words) == 1 else [spelling, *words]
    if isinstance(flag.default, list | tuple):  # argparse's append: one flag for each value
        return [part for word in words for part in _pair(spelling, word)]
    raise _unwritable(arg, f"{spelling} takes one value")


def _pair(spelling: str, word: str) -> list[str]:
    """``--flag value``, or ``--flag=-value`` where a parser would take the value for a flag."""
    return [f"{spelling}={word}"] if word.startswith("-") else [spelling, word]


def _word(value: Any, flag: Flag) -> str:
    if isinstance(value, dict) or (flag.takes_object and not isinstance(value, str)):
        return json_arg(value)
    return _checked(str(value), flag.dest)


def _checked(word: str, name: str) -> str:
    """The word, if an operating system can pass it at all: no NUL, no lone surrogate."""
    if "\0" in word or any("\ud800" <= c <= "\udfff" for c in word):
        raise OutputError(
            f"{name} holds a character that no command line can carry: {word!r}",
            fix="remove the character",
        )
    return word


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdecimal()


def _unwritable(arg: EngineArg, why: str) -> OutputError:
    origin = arg.origin
    return OutputError(
        f"cannot write {arg.dest}={arg.value!r}: {why}",
        where=origin.id if isinstance(origin, Decision) else str(origin),
        fix="name a vLLM version whose flags fit, or change what asks for this one",
    )
