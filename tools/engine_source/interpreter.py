"""Follows the part of Python in which vLLM writes down its flags, variables and defaults.

Nothing of the source is imported or run: statements are followed here, on values of
:mod:`engine_source.values`, and only functions of Python without effects are called. What cannot
be followed becomes :class:`Unknown` and is noted in ``remarks``; it is never guessed.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from engine_source import expressions, statements
from engine_source.modules import Module, SourceTree
from engine_source.names import Names
from engine_source.values import (
    External,
    Function,
    Instance,
    NotReadError,
    SourceClassMeta,
    Unknown,
)

_SPECIAL = ("__name__", "__module__", "__doc__", "__members__")
_DEEPEST = 60  # calls within calls
_NOT_FOLLOWED = ("load_general_plugins", "warn", "init_logger")
_TAKES_FUNCTIONS = (sorted, map, filter, max, min)


class Interpreter:
    """One reading of one source tree.

    Args:
        tree: the source.
    """

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.remarks: list[str] = []
        self.names = Names(tree, self)
        self.classes = self.names.classes
        self._depth = 0

    def value(self, module: str, name: str) -> Any:
        """The value of a top-level name.

        Raises:
            NotReadError: there is no such module or name.
        """
        found = self.tree.module(module)
        if found is None:
            raise NotReadError(f"there is no module {module}")
        return self.names.top_level(found, name)

    def evaluate(self, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
        """The value of an expression, :class:`Unknown` where it cannot be told."""
        try:
            return expressions.evaluate(self, node, module, scope)
        except NotReadError as error:
            return Unknown(str(error))
        except Exception as error:  # noqa: BLE001 - an operation that fails on what was read
            return Unknown(f"{type(error).__name__}: {error}")

    def name(self, name: str, module: Module, scope: Mapping[str, Any]) -> Any:
        """What a name means at a place."""
        if name in scope:
            return scope[name]
        if name in module.bindings or name in module.checked_imports:
            return self.names.top_level(module, name)
        return self.names.builtin(name)

    def truth(self, value: Any) -> bool:
        """Whether a value is true.

        Raises:
            NotReadError: it is not known.
        """
        if isinstance(value, Unknown):
            raise NotReadError(value.why)
        if isinstance(value, External):
            raise NotReadError(value.dotted)
        return bool(value)

    def items(self, value: Any) -> list[Any]:
        """What a loop over a value goes through.

        Raises:
            NotReadError: it is not known.
        """
        if isinstance(value, Unknown | External):
            raise NotReadError(f"a loop over {value!r}")
        if isinstance(value, SourceClassMeta):
            return list(self.classes.members(value))
        return list(value)

    def attribute(self, value: Any, name: str) -> Any:
        """``value.name``."""
        if isinstance(value, Unknown):
            return value
        if name.startswith("__") and name not in _SPECIAL:
            raise NotReadError(f"{name} is not followed")
        if isinstance(value, Module):
            return self.names.attribute_of_module(value.name, name)
        if isinstance(value, SourceClassMeta):
            if name == "__module__":
                return value.__module__
            return self.classes.attribute(value, name)
        if isinstance(value, Instance):
            return self.classes.attribute(value.cls, name)
        if isinstance(value, Function) and name == "__name__":
            return value.name
        if isinstance(value, External):
            return self.names.attribute_of_module(value.dotted, name)
        if isinstance(value, ModuleType):
            return self.names.attribute_of_module(value.__name__, name)
        return getattr(value, name)

    def found(self, value: Any, name: str) -> Any:
        """``value.name``, :class:`Unknown` where there is none."""
        try:
            return self.attribute(value, name)
        except (NotReadError, AttributeError) as error:
            return Unknown(str(error))

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """``function(*args, **kwargs)``; what is not of the source or pure is unknown."""
        if isinstance(function, Function):
            return self._call(function, args, kwargs)
        if isinstance(function, SourceClassMeta):
            if self.classes.is_enum(function):
                found = [m for m in self.classes.members(function) if m.value == args[0]]
                return found[0] if found else Unknown(f"{function.__name__}({args[0]!r})")
            return Instance(function)
        if isinstance(function, Unknown | External):
            return Unknown(f"a call of {function!r}")
        unknown = next((a for a in args if isinstance(a, Unknown)), None)
        if unknown is not None and getattr(function, "__self__", None) is None:
            return unknown  # a method may keep it: list.append, Parser.add_argument
        if function in _TAKES_FUNCTIONS:
            args = tuple(self._plain(a) for a in args)
            kwargs = {key: self._plain(a) for key, a in kwargs.items()}
        return function(*args, **kwargs)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Function):
            return lambda *args: self.call(value, *args)
        return self.items(value) if isinstance(value, SourceClassMeta) else value

    def _call(self, function: Function, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        if function.name in _NOT_FOLLOWED:
            return Unknown(function.name)
        if self._depth > _DEEPEST:
            raise NotReadError(f"{function.name} goes too deep")
        bound = self._bind(function, tuple(args), kwargs)
        closure = function.closure
        layers = closure.maps if isinstance(closure, ChainMap) else [dict(closure)]
        scope: ChainMap[str, Any] = ChainMap(bound, *layers)
        if function.owner is not None:
            scope["__class__"] = function.owner
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, function.scope, scope)
            if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in function.body):
                return Unknown(f"{function.name} is a generator")
            statements.run_all(self, function.node.body, function.scope, scope)
        except statements.Returned as found:
            return found.value
        finally:
            self._depth -= 1
        return None

    def _bind(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The values of a function's parameters."""
        written = function.node.args
        if function.bound is not None:
            args = (function.bound, *args)
        names = [a.arg for a in (*written.posonlyargs, *written.args)]
        found = dict(function.defaults)
        pairs = list(zip(reversed(names), reversed(written.defaults), strict=False))
        pairs += [
            (a.arg, d)
            for a, d in zip(written.kwonlyargs, written.kw_defaults, strict=True)
            if d is not None
        ]
        for name, default in pairs:
            if name not in found:
                found[name] = self.evaluate(default, function.scope, function.closure)
        found.update(zip(names, args, strict=False))
        extra = args[len(names) :]
        if written.vararg:
            found[written.vararg.arg] = extra
        known = {*names, *(a.arg for a in written.kwonlyargs)}
        found.update({k: v for k, v in kwargs.items() if k in known})
        if written.kwarg:
            found[written.kwarg.arg] = {k: v for k, v in kwargs.items() if k not in known}
        return found
