"""The flags of ``vllm serve``: its parser is built as the source says, on a stand-in."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from collections.abc import Iterable
from typing import Any, get_args

import snapshot_engine

from engine_source.interpreter import Interpreter
from engine_source.kinds import kind_of, reached, text_of
from engine_source.values import (
    External,
    Function,
    Instance,
    Member,
    NotReadError,
    SourceClassMeta,
    Unknown,
)

_UTILITIES = ("vllm.utils.argparse_utils", "vllm.utils")  # where FlexibleArgumentParser is


class Parser:
    """What the source takes for an ``ArgumentParser``, or a group of one; it keeps the calls."""

    check_port = int  # FlexibleArgumentParser's own type of --port

    def __init__(self, calls: list[tuple[tuple[Any, ...], dict[str, Any]]] | None = None) -> None:
        self.calls = [] if calls is None else calls

    def add_argument_group(self, *_: Any, **__: Any) -> Parser:
        """A group adds to its parser."""
        return Parser(self.calls)

    add_mutually_exclusive_group = add_parser = add_argument_group

    def add_argument(self, *names: Any, **kwargs: Any) -> None:
        """Keep one argument."""
        self.calls.append((names, kwargs))

    add_argument.records = True  # type: ignore[attr-defined]  # keeps what is unknown, too

    def __getattr__(self, name: str) -> Unknown:
        return Unknown(f"parser.{name}")


def read_flags(reading: Interpreter) -> tuple[list[dict[str, Any]], str]:
    """Every flag as :func:`snapshot_engine.read_flags` has them, and the module they are made in.

    Raises:
        NotReadError: the parser is in none of the known modules.
    """
    parser = Parser()
    module = _build(reading, parser)
    inverse = _inverse_prefixes(reading)
    flags: dict[str, dict[str, Any]] = {}
    for names, kwargs in parser.calls:
        if not names or not str(names[0]).startswith("-"):
            continue
        flag = _flag(reading, [str(n) for n in names], kwargs, inverse)
        if flag["dest"] in flags:  # one more spelling of a dest
            _join(flags[flag["dest"]], flag)
        else:
            flags[flag["dest"]] = flag
    return [_lean(flags[dest]) for dest in sorted(flags)], module


def _build(reading: Interpreter, parser: Parser) -> str:
    """Follow what ``vllm serve`` does to make its parser."""
    for name in snapshot_engine.PARSER_MODULES:
        module = reading.tree.module(name)
        if module is not None and "make_arg_parser" in module.bindings:
            break
    else:
        raise NotReadError(
            f"there is no make_arg_parser in {', '.join(snapshot_engine.PARSER_MODULES)}"
        )
    serve = reading.value("vllm.entrypoints.cli.serve", "ServeSubcommand")
    init = reading.classes.attribute(serve, "subparser_init")
    init.bound = Instance(serve)
    reading.call(init, parser)
    if not parser.calls:
        raise NotReadError("ServeSubcommand.subparser_init adds nothing")
    return module.name


def _inverse_prefixes(reading: Interpreter) -> dict[str, str]:
    """Prefixes that the parser's boolean flags can be inverted by, beside ``--no-``."""
    for name in _UTILITIES:
        module = reading.tree.module(name)
        if module is None or "FlexibleArgumentParser" not in module.bindings:
            continue
        flexible = reading.names.top_level(module, "FlexibleArgumentParser")
        for node in ast.walk(flexible.node):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "self.register"
                and "BooleanOptionalAction" in ast.unparse(node.args[1])
            ):
                action = reading.evaluate(node.args[2], module, {})
                return dict(reading.classes.attribute(action, "_inverse_prefixes"))
        return {}
    return {}


def _flag(
    reading: Interpreter, names: list[str], kwargs: dict[str, Any], inverse: dict[str, str]
) -> dict[str, Any]:
    long = [n for n in names if n.startswith("--")] or names
    dest = kwargs.get("dest") or long[0].lstrip("-").replace("-", "_")
    action = kwargs.get("action", "store")
    negations: list[str] = []
    kind: str | None = "bool"
    nargs = kwargs.get("nargs")
    default = kwargs.get("default")
    if _optional_boolean(reading, action):
        negations = ["--no-" + n[2:] for n in names if n.startswith("--")]
        negations += [
            to + n.removeprefix(prefix)
            for n in names
            for prefix, to in inverse.items()
            if n.startswith(prefix)
        ]
        nargs = None
    elif action in ("store_true", "store_false"):
        default = kwargs.get("default", action == "store_false")
        names, negations = (names, []) if action == "store_true" else ([], names)
    elif getattr(action, "__name__", "") == "StoreBoolean":
        nargs = nargs or "1"  # one word, true or false; "?" lets it away
    elif _takes_nothing(reading, action):
        nargs = None
    else:
        kind = None if "unread" in kwargs else kind_of(reading, kwargs.get("type"))
        if isinstance(nargs, Unknown) or isinstance(action, Unknown):
            kind, nargs = None, None
    choices = kwargs.get("choices")
    if isinstance(choices, SourceClassMeta):
        choices = reading.classes.members(choices)
    if choices is None or isinstance(choices, Unknown):
        choices = _later_choices(reading, dest, kwargs.get("type"), kind)
    return {
        "dest": dest,
        "spellings": names,
        "negations": negations,
        "kind": kind,
        "nargs": None if nargs is None else str(nargs),
        "choices": _in_order(plain(c) for c in choices),
        "default": plain(default),
        "deprecated": snapshot_engine.deprecation(
            kwargs.get("help") if isinstance(kwargs.get("help"), str) else "",
            marked=kwargs.get("deprecated") is True,
        ),
    }


def _in_order(choices: Iterable[Any]) -> list[str]:
    """Choices as text, numbers by their size; that none is a choice, too, is left out."""
    kept = [c for c in choices if c not in (None, "None")]
    return [str(c) for c in sorted(set(kept))]


def _optional_boolean(reading: Interpreter, action: Any) -> bool:
    if isinstance(action, SourceClassMeta):
        return any(
            base is argparse.BooleanOptionalAction
            for cls in reading.classes.lineage(action)
            for base in reading.classes.bases(cls)
        )
    return action is argparse.BooleanOptionalAction


def _takes_nothing(reading: Interpreter, action: Any) -> bool:
    """Whether an action of the source sets ``nargs=0`` itself, or is a ``store_true`` with more."""
    if not isinstance(action, SourceClassMeta):
        return False
    for cls in reading.classes.lineage(action):
        bases = [ast.unparse(b) for b in cls.node.bases]
        if any(b.endswith(("_StoreTrueAction", "_StoreFalseAction")) for b in bases):
            return True
        if "nargs=0" in ast.unparse(cls.node):
            return True
    return False


def _later_choices(reading: Interpreter, dest: str, function: Any, kind: str | None) -> list[Any]:
    """Values that are checked after parsing; none where that is not told."""
    try:
        if dest == "kv_cache_dtype":
            return list(get_args(_first(reading, "CacheDType", "vllm.config.cache", "vllm.config")))
        if dest == "quantization":
            package = "vllm.model_executor.layers.quantization"
            return list(reading.items(reading.value(package, "QUANTIZATION_METHODS")))
        if kind == "json":
            return _json_keys(reading, function)
    except NotReadError as error:
        reading.remarks.append(f"choices of {dest}: {error}")
    return []


def _first(reading: Interpreter, name: str, *modules: str) -> Any:
    for module in modules:
        try:
            return reading.value(module, name)
        except NotReadError:
            continue
    raise NotReadError(f"{name} is in none of {', '.join(modules)}")


def _json_keys(reading: Interpreter, function: Any) -> list[str]:
    """Keys a JSON option takes, when its value is a dataclass that forbids others."""
    if not isinstance(function, Function) or "validate_json" not in text_of(function):
        return []
    for value in reached(function):
        if reading.classes.is_dataclass(value) and reading.classes.forbids_extra(value):
            return [f.name for f in reading.classes.fields(value) if _takes(reading, value, f.name)]
    return []


def _takes(reading: Interpreter, cls: Any, name: str) -> bool:
    """Whether a field is an argument of its class (``init=False`` is none)."""
    for one in reading.classes.lineage(cls):
        for statement in one.node.body:
            if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
                value = statement.value
                return not (
                    isinstance(value, ast.Call)
                    and any(
                        k.arg == "init" and ast.unparse(k.value) == "False" for k in value.keywords
                    )
                )
    return True


def plain(value: Any) -> Any:
    """A default as JSON has it; ``None`` for what only vLLM can make."""
    if isinstance(value, Member):
        return plain(value.value)
    if isinstance(value, Instance):
        return {}  # a configuration object at its own defaults
    if isinstance(value, Unknown | External | Function) or value is dataclasses.MISSING:
        return None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(v) for v in value)
    if value == argparse.SUPPRESS:
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else None


def _join(flag: dict[str, Any], more: dict[str, Any]) -> None:
    for name in ("spellings", "negations"):
        flag[name] = [*flag[name], *(n for n in more[name] if n not in flag[name])]


def _lean(flag: dict[str, Any]) -> dict[str, Any]:
    """Names in their order, and without what is empty."""
    for name in ("spellings", "negations"):
        flag[name] = sorted(flag[name], key=snapshot_engine.spelling_order)
    return {k: v for k, v in flag.items() if v not in (None, []) or k in ("default", "kind")}
