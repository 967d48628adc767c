"""What a name means in a module: its own, an import's, or Python's."""

from __future__ import annotations

import argparse
import ast
import collections
import collections.abc
import copy
import dataclasses
import enum
import functools
import itertools
import json
import math
import operator
import re
import ssl
import string
import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from engine_source import statements
from engine_source.classes import SourceClasses
from engine_source.modules import Module, SourceTree
from engine_source.values import Function, NotReadError, Unknown, external

if TYPE_CHECKING:
    from engine_source.interpreter import Interpreter

ARGV = ["vllm"]
PYTHON = (3, 12, 0)

# Modules whose functions have no effect on the machine: their own objects are used.
_PURE = {
    module.__name__: module
    for module in (
        argparse, collections, collections.abc, dataclasses, enum, itertools, json, math,
        operator, re, ssl, string, types, typing,
    )
}  # fmt: skip
_PURE |= {"typing_extensions": typing, "regex": re}
_PURE_BUILTINS = (
    "abs", "all", "any", "bool", "bytes", "callable", "dict", "divmod", "enumerate",
    "filter", "float", "frozenset", "int", "isinstance", "iter", "len", "list",
    "map", "max", "min", "next", "object", "pow", "range", "repr", "reversed", "round",
    "set", "sorted", "str", "sum", "tuple", "type", "zip", "Ellipsis", "NotImplemented",
    "ValueError", "TypeError", "KeyError", "AttributeError", "RuntimeError", "Exception",
    "ImportError", "NotImplementedError", "property",
)  # fmt: skip


class _Itself:
    """``SkipValidation[int]`` is ``int`` to argparse."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item


class _CudaPlatform:
    """vLLM's ``current_platform`` on an NVIDIA GPU, as far as its name goes."""

    device_type = "cuda"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_") and "device" not in name:
            return lambda: name in ("is_cuda", "is_cuda_alike")
        return Unknown(f"current_platform.{name}")


def _same(function: Any = None, **_: Any) -> Any:
    """A decorator that changes nothing that is read here."""
    return function if function is not None else _same


class Names:
    """Meanings of names, each worked out once.

    Args:
        tree: the source.
        interpreter: what evaluates the statements that bind names.
    """

    def __init__(self, tree: SourceTree, interpreter: Interpreter) -> None:
        self.tree = tree
        self._interpreter = interpreter
        self._found: dict[tuple[str, str], Any] = {}
        self.classes = SourceClasses(interpreter)
        builtins = vars(sys.modules["builtins"])
        self._builtins = {name: builtins[name] for name in _PURE_BUILTINS}
        self._builtins["issubclass"] = self.classes.issubclass
        self._builtins["hasattr"] = self._has
        self._builtins["getattr"] = self._get
        self._replaced = {
            "dataclasses.fields": self.classes.fields,
            "dataclasses.is_dataclass": self.classes.is_dataclass,
            "dataclasses.field": self.classes.field_default,
            "pydantic.Field": self.classes.field_default,
            "pydantic.fields.Field": self.classes.field_default,
            "copy.deepcopy": copy.deepcopy,
            "functools.lru_cache": _same,
            "functools.cache": _same,
            "functools.partial": functools.partial,
            "vllm.platforms.current_platform": _CudaPlatform(),
            "vllm.engine.arg_utils.NEEDS_HELP": True,  # help texts carry the deprecations
            "sys.argv": ARGV,
            "sys.version_info": PYTHON,
            "os.getenv": lambda _, default=None: default,
            "os.environ": {},
            "typing.TYPE_CHECKING": False,
            "pydantic.SkipValidation": _Itself,
            "pydantic.functional_validators.SkipValidation": _Itself,
        }

    def _has(self, value: Any, name: str) -> bool:
        return not isinstance(self._interpreter.found(value, name), Unknown)

    def _get(self, value: Any, name: str, *default: Any) -> Any:
        found = self._interpreter.found(value, name)
        return default[0] if isinstance(found, Unknown) and default else found

    def builtin(self, name: str) -> Any:
        """A builtin that cannot do harm.

        Raises:
            NotReadError: there is none of this name.
        """
        if name not in self._builtins:
            raise NotReadError(f"{name} is not known")
        return self._builtins[name]

    def top_level(self, module: Module, name: str) -> Any:
        """The value of a module's top-level name.

        Raises:
            NotReadError: it has none, or none that can be read.
        """
        key = (module.name, name)
        if key not in self._found:
            self._found[key] = Unknown(f"{module.name}.{name} refers to itself")
            self._found[key] = self._top_level(module, name)
        return self._found[key]

    def _top_level(self, module: Module, name: str) -> Any:
        special = self._replaced.get(f"{module.name}.{name}")
        if special is not None:
            return special
        own = {"get_attr_docs": self.classes.docs, "get_field": self.classes.field_of}
        if name in own and isinstance(module.bindings.get(name, [None])[-1], ast.FunctionDef):
            return own[name]
        statements = module.bindings.get(name) or module.checked_lazily(name)
        if not statements:
            return self._implicit(module, name)
        value: Any = Unknown(name)
        for statement in statements:
            value = self._bound(module, name, statement, value)
        return value

    def _bound(self, module: Module, name: str, statement: ast.stmt, before: Any) -> Any:
        """The value of a name after one more of the statements that bind it."""
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return self.imported(module, statement, name)
        if isinstance(statement, ast.ClassDef):
            return self.classes.define(statement, module)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            return Function(statement, module, {})
        scope = {} if isinstance(before, Unknown) else {name: before}
        try:
            statements.run(self._interpreter, statement, module, scope)
        except NotReadError as error:
            return Unknown(str(error))
        return scope.get(name, before)

    def _implicit(self, module: Module, name: str) -> Any:
        child = self.tree.module(f"{module.name}.{name}") if module.is_package else None
        if child is not None:
            return child
        for statement in module.stars:
            whole = self.tree.module(module.resolved(statement))
            if whole is not None and (name in whole.bindings or whole.stars):
                return self.top_level(whole, name)
        if module.name == "vllm.envs":
            variables = self.top_level(module, "environment_variables")
            if isinstance(variables, dict) and name in variables:
                return self._interpreter.call(variables[name])
        raise NotReadError(f"{module.name} has no {name}")

    def imported(self, module: Module, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        """What an import binds to a name."""
        alias = next(a for a in statement.names if name == (a.asname or a.name.partition(".")[0]))
        if isinstance(statement, ast.Import):
            whole = alias.name if alias.asname else name
            return self.module_value(whole)
        return self.attribute_of_module(module.resolved(statement), alias.name)

    def module_value(self, dotted: str) -> Any:
        """A module as a value: of the source, one of Python's pure ones, or a stand-in."""
        own = self.tree.module(dotted)
        if own is not None:
            return own
        return _PURE.get(dotted) or external(dotted)

    def attribute_of_module(self, dotted: str, name: str) -> Any:
        """``name`` of the module ``dotted``."""
        if f"{dotted}.{name}" in self._replaced:
            return self._replaced[f"{dotted}.{name}"]
        own = self.tree.module(dotted)
        if own is not None:
            child = self.tree.module(f"{dotted}.{name}")
            if child is not None and name not in own.bindings:
                return child
            return self.top_level(own, name)
        pure = _PURE.get(dotted)
        if hasattr(pure, name):
            found = getattr(pure, name)
            if not isinstance(found, types.ModuleType):
                return found
        return external(f"{dotted}.{name}")
