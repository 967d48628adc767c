"""What a ``type=`` function makes of a word, told from its source."""

from __future__ import annotations

import ast
from typing import Any

from engine_source.interpreter import Interpreter
from engine_source.values import Function, SourceClassMeta

_OWN_KINDS = {  # of vLLM's own functions
    "human_readable_int": "tokens",
    "human_readable_int_or_auto": "tokens_or_auto",
    "nullable_kvs": "pairs",
    "union_dict_and_str": "json_or_text",
}
_TEXT = ("nullable_str", "parse_reasoning_parser", "<lambda>")
_UNREAD = None  # the kind of a value that only running its type function would tell


def kind_of(reading: Interpreter, function: Any) -> str | None:
    """Kind of the values a ``type=`` function makes, ``None`` where it is not told."""
    if function in (None, str, bool):  # bool("False") is true: any word is taken
        return "str"
    if function in (int, float):
        return str(function.__name__)
    if _is_json_loads(function):
        return "json"
    if not isinstance(function, Function):
        return _UNREAD
    if function.name in _OWN_KINDS:
        return _OWN_KINDS[function.name]
    text = ast.unparse(function.node)
    if "['0', '1', '2', '3']" in text and "level=" in text:
        return "json_or_level"
    seen = _seen(function)
    if ".from_cli(" in text:
        own = [reading.found(v, "from_cli") for v in seen if isinstance(v, SourceClassMeta)]
        seen += [v for v in own if isinstance(v, Function)]
    kinds = {kind_of(reading, v) for v in seen if _converts(v)} - {"str"}
    if kinds == {"json"} and "nullable_kvs(" in text:
        return "json_or_pairs"
    if len(kinds) == 1:
        return kinds.pop()
    if not kinds and ("json.loads(" in text or "validate_json" in text):
        return "json"
    known = function.name in _TEXT or any(_converts(v) for v in seen)
    return "str" if not kinds and known else _UNREAD


def _is_json_loads(value: Any) -> bool:
    return getattr(value, "__qualname__", "") == "loads"


def _converts(value: Any) -> bool:
    return isinstance(value, Function) or value in (int, float, str) or _is_json_loads(value)


def _seen(function: Function) -> list[Any]:
    """Values that a function closes over and uses, and its defaults."""
    used = {n.id for n in function.body if isinstance(n, ast.Name)}
    closed = (name for name in sorted(used - function.defaults.keys()) if name in function.closure)
    found = [*function.defaults.values(), *(function.closure[name] for name in closed)]
    return [value for value in found if value is not function]


def reached(function: Function) -> list[Any]:
    """Everything a function closes over or has for a default, and what those do."""
    found = []
    for value in _seen(function):
        found.append(value)
        if isinstance(value, Function):
            found += reached(value)
    return found


def text_of(function: Function) -> str:
    """The source of a function and of those it calls."""
    functions = [function, *(v for v in reached(function) if isinstance(v, Function))]
    return " ".join(ast.unparse(f.node) for f in functions)
