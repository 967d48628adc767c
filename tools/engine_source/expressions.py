"""Expressions: what each kind of them is worth."""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine_source import statements
from engine_source.modules import Module
from engine_source.values import Function, Instance, Member, NotReadError, SourceClassMeta, Unknown

if TYPE_CHECKING:
    from engine_source.interpreter import Interpreter

_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARE = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


class Super:
    """``super()`` inside of a method."""

    def __init__(self, owner: Any, cls: Any) -> None:
        self.owner = owner
        self.cls = cls


def evaluate(reading: Interpreter, node: ast.expr, module: Module, scope: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Raises:
        NotReadError: it cannot be told; so does any exception of the operation itself.
    """
    found = _EXPRESSIONS.get(type(node))
    if found is None:
        raise NotReadError(f"{type(node).__name__} is not followed")
    return found(reading, node, module, scope)


def binary(kind: ast.operator, left: Any, right: Any) -> Any:
    """``left + right`` and the like."""
    for side in (left, right):
        if isinstance(side, Unknown):
            return side
    return _BINARY[type(kind)](left, right)


def _constant(_: Interpreter, node: Any, *__: Any) -> Any:
    return node.value


def _name(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    return reading.name(node.id, module, scope)


def _attribute(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    holder = reading.evaluate(node.value, module, scope)
    if isinstance(holder, Super):
        after = False
        for cls in reading.classes.lineage(holder.cls):
            if after:
                found = reading.classes.attribute(cls, node.attr)
                if isinstance(found, Function) and found.bound is not None:
                    found.bound = holder.cls
                return found
            after = cls is holder.owner
        raise NotReadError(f"super() has no {node.attr}")
    return reading.attribute(holder, node.attr)


def _subscript(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    holder = reading.evaluate(node.value, module, scope)
    key = reading.evaluate(node.slice, module, scope)
    if isinstance(holder, Unknown):
        return holder
    if isinstance(key, Unknown):
        return key
    if isinstance(holder, SourceClassMeta) and reading.classes.is_enum(holder):
        return reading.classes.attribute(holder, key)
    return holder[key]


def _slice(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    parts = (
        None if part is None else reading.evaluate(part, module, scope)
        for part in (node.lower, node.upper, node.step)
    )
    return slice(*parts)


def _sequence(reading: Interpreter, node: Any, module: Module, scope: Any) -> list[Any]:
    found = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            found += reading.items(reading.evaluate(item.value, module, scope))
        else:
            found.append(reading.evaluate(item, module, scope))
    return found


def _dict(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        read = reading.evaluate(value, module, scope)
        if key is not None:
            name = reading.evaluate(key, module, scope)
            if isinstance(name, Unknown):
                return name
            found[name] = read
        elif isinstance(read, Unknown):
            return read
        else:
            found.update(read)
    return found


def _joined(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(part.value)
            continue
        value = reading.evaluate(part.value, module, scope)
        if isinstance(value, Unknown):
            return value
        parts.append(str(value.value if isinstance(value, Member) else value))
    return "".join(parts)


def _operation(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    left = reading.evaluate(node.left, module, scope)
    return binary(node.op, left, reading.evaluate(node.right, module, scope))


def _unary(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    value = reading.evaluate(node.operand, module, scope)
    if isinstance(node.op, ast.Not):
        return not reading.truth(value)
    return value if isinstance(value, Unknown) else -value


def _boolean(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    stops_at = isinstance(node.op, ast.Or)
    value: Any = None
    for part in node.values:
        value = reading.evaluate(part, module, scope)
        if isinstance(value, Unknown) or reading.truth(value) is stops_at:
            return value
    return value


def _compare(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    left = reading.evaluate(node.left, module, scope)
    for kind, right_node in zip(node.ops, node.comparators, strict=True):
        right = reading.evaluate(right_node, module, scope)
        for side in (left, right):
            if isinstance(side, Unknown):
                return side
        if not _COMPARE[type(kind)](left, right):
            return False
        left = right
    return True


def _conditional(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    taken = reading.truth(reading.evaluate(node.test, module, scope))
    return reading.evaluate(node.body if taken else node.orelse, module, scope)


def _call(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and "__class__" in scope:
        own = scope["cls"] if "cls" in scope else scope["self"]
        cls = own.cls if isinstance(own, Instance) else own
        return Super(scope["__class__"], cls)
    function = reading.evaluate(node.func, module, scope)
    args = _sequence_of(reading, node.args, module, scope)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = reading.evaluate(keyword.value, module, scope)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Unknown):
            if not hasattr(function, "records"):
                return value
            kwargs["unread"] = value
        else:
            kwargs.update(value)
    return reading.call(function, *args, **kwargs)


def _sequence_of(reading: Interpreter, nodes: Any, module: Module, scope: Any) -> list[Any]:
    return _sequence(reading, ast.List(elts=nodes), module, scope)


def _lambda(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    names = [a.arg for a in node.args.args]
    pairs = zip(reversed(names), reversed(node.args.defaults), strict=False)
    defaults = {name: reading.evaluate(d, module, scope) for name, d in pairs}
    return Function(node, module, scope, defaults)


def _comprehension(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    found: list[Any] = []
    pairs: dict[Any, Any] = {}

    def go(generators: list[ast.comprehension], names: Any) -> None:
        if not generators:
            if isinstance(node, ast.DictComp):
                key = reading.evaluate(node.key, module, names)
                pairs[key] = reading.evaluate(node.value, module, names)
            else:
                found.append(reading.evaluate(node.elt, module, names))
            return
        first, *rest = generators
        for item in reading.items(reading.evaluate(first.iter, module, names)):
            inner = ChainMap({}, names)
            statements.store(reading, first.target, item, module, inner)
            if all(reading.truth(reading.evaluate(t, module, inner)) for t in first.ifs):
                go(rest, inner)

    go(node.generators, scope)
    if isinstance(node, ast.DictComp):
        return pairs
    unknown = next((item for item in found if isinstance(item, Unknown)), None)
    if isinstance(node, ast.SetComp):
        return unknown or set(found)
    if isinstance(node, ast.GeneratorExp):
        return unknown or iter(found)
    return found


def _walrus(reading: Interpreter, node: Any, module: Module, scope: Any) -> Any:
    value = reading.evaluate(node.value, module, scope)
    scope[node.target.id] = value
    return value


_EXPRESSIONS: dict[type, Callable[..., Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.List: _sequence,
    ast.Tuple: lambda *args: tuple(_sequence(*args)),
    ast.Set: lambda *args: set(_sequence(*args)),
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.BinOp: _operation,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.NamedExpr: _walrus,
}
