"""Statements: what following each kind of them does to the names in sight."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine_source import expressions
from engine_source.modules import Module
from engine_source.values import Function, NotReadError, Unknown

if TYPE_CHECKING:
    from engine_source.interpreter import Interpreter


class Returned(Exception):  # noqa: N818 - control flow
    """``return`` was reached."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):  # noqa: N818 - control flow
    pass


class _Continue(Exception):  # noqa: N818 - control flow
    pass


def run_all(reading: Interpreter, body: list[ast.stmt], module: Module, scope: Any) -> None:
    """Follow statements; one that cannot be followed leaves the names it sets unknown."""
    for statement in body:
        try:
            run(reading, statement, module, scope)
        except NotReadError as error:
            reading.remarks.append(f"{module.name}:{statement.lineno}: {error}")
            _forget(reading, statement, module, (scope, str(error)))


def _forget(
    reading: Interpreter, statement: ast.stmt, module: Module, known: tuple[Any, str]
) -> None:
    """Make unknown what a statement may have set, and what its function may have returned."""
    scope, why = known
    for node in ast.walk(statement):
        if isinstance(node, ast.Return):
            raise Returned(Unknown(why))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope[node.id] = Unknown(why)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            holder = reading.evaluate(node.value, module, scope)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(holder, dict) and key is not None:
                holder[key] = Unknown(why)


def run(reading: Interpreter, statement: ast.stmt, module: Module, scope: Any) -> None:
    """Follow one statement.

    Raises:
        NotReadError: it cannot be followed.
    """
    follow = _STATEMENTS.get(type(statement))
    if follow is not None:
        follow(reading, statement, module, scope)


def _function(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    defaults = {}
    names = [a.arg for a in node.args.args]
    for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
        defaults[name] = reading.evaluate(default, module, scope)
    scope[node.name] = Function(node, module, scope, defaults)


def _assign(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    if node.value is None:
        return
    value = reading.evaluate(node.value, module, scope)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        store(reading, target, value, module, scope)


def _augment(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    before = reading.evaluate(ast.parse(ast.unparse(node.target), mode="eval").body, module, scope)
    value = reading.evaluate(node.value, module, scope)
    store(reading, node.target, expressions.binary(node.op, before, value), module, scope)


def store(reading: Interpreter, target: ast.expr, value: Any, module: Module, scope: Any) -> None:
    """Set a name, an item or several of them."""
    if isinstance(target, ast.Name):
        scope[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values = reading.items(value)
        starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        if starred:
            raise NotReadError("a starred target")
        for one, item in zip(target.elts, values, strict=False):
            store(reading, one, item, module, scope)
    elif isinstance(target, ast.Subscript):
        holder = reading.evaluate(target.value, module, scope)
        key = reading.evaluate(target.slice, module, scope)
        if isinstance(holder, dict | list) and not isinstance(key, Unknown):
            holder[key] = value


def _delete(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            holder = reading.evaluate(target.value, module, scope)
            key = reading.evaluate(target.slice, module, scope)
            if isinstance(holder, dict):
                holder.pop(key, None)


def _if(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    taken = reading.truth(reading.evaluate(node.test, module, scope))
    run_all(reading, node.body if taken else node.orelse, module, scope)


def _for(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    for item in reading.items(reading.evaluate(node.iter, module, scope)):
        store(reading, node.target, item, module, scope)
        try:
            run_all(reading, node.body, module, scope)
        except _Continue:
            continue
        except _Break:
            break


def _return(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    raise Returned(None if node.value is None else reading.evaluate(node.value, module, scope))


def _import(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        try:
            scope[name] = reading.names.imported(module, node, name)
        except NotReadError as error:
            scope[name] = Unknown(str(error))


def _try(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    run_all(reading, [*node.body, *node.orelse, *node.finalbody], module, scope)


def _with(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    run_all(reading, node.body, module, scope)


def _expression(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    reading.evaluate(node.value, module, scope)


def _raise(_: Interpreter, node: Any, *__: Any) -> None:
    raise NotReadError(ast.unparse(node)[:80])


def _break(*_: Any) -> None:
    raise _Break


def _continue(*_: Any) -> None:
    raise _Continue


def _class(reading: Interpreter, node: Any, module: Module, scope: Any) -> None:
    scope[node.name] = reading.classes.define(node, module)


_STATEMENTS: dict[type, Callable[..., None]] = {
    ast.FunctionDef: _function,
    ast.ClassDef: _class,
    ast.Assign: _assign,
    ast.AnnAssign: _assign,
    ast.AugAssign: _augment,
    ast.Delete: _delete,
    ast.If: _if,
    ast.For: _for,
    ast.Return: _return,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Try: _try,
    ast.With: _with,
    ast.Expr: _expression,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
}
