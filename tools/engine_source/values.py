"""What the values are that the reading of a source knows of, beside Python's own.

Annotations are built of real ``typing`` objects, so that a source's own ``get_origin`` and ``is``
work on them. Classes of vLLM are empty Python classes that remember where they are written
(:class:`SourceClass`); names of packages that are not read are :class:`External` classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any


class NotReadError(Exception):
    """Something that only running the code would tell."""


class Unknown:
    """A value that cannot be read; what is made of it is unknown, too."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"Unknown({self.why})"

    def __deepcopy__(self, _: Any) -> Unknown:
        return self


class External(type):
    """Classes of this metaclass stand for a name of a package that is not read."""

    dotted: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return external(f"{cls.dotted}.{name}")

    def __getitem__(cls, item: Any) -> Any:
        return cls


@cache
def external(dotted: str) -> External:
    """The stand-in for ``package.name``, the same one each time."""
    module, _, name = dotted.rpartition(".")
    return External(name or dotted, (), {"__module__": module or dotted, "dotted": dotted})


class SourceClassMeta(type):
    """Classes of this metaclass stand for one that is written in the source."""

    node: ast.ClassDef
    scope: Any  # the module it is written in

    def __getitem__(cls, item: Any) -> Any:
        return cls


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a configuration class, as ``dataclasses.fields`` gives it."""

    name: str
    type: Any
    default: Any
    default_factory: Any


@dataclass(frozen=True, slots=True)
class FieldDefault:
    """``field(...)`` or ``Field(...)`` as the value of a class attribute."""

    default: Any
    default_factory: Any


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A member of an enum of the source."""

    owner: Any
    name: str
    value: Any


@dataclass(slots=True, eq=False)
class Function:
    """A function or lambda of the source, with the names it can see."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Any  # the module
    closure: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    bound: Any = None  # self or cls
    owner: Any = None  # the class it is written in

    @property
    def name(self) -> str:
        """Its name; ``<lambda>`` for a lambda."""
        return getattr(self.node, "name", "<lambda>")

    @property
    def body(self) -> Iterator[ast.AST]:
        """Every node of its body."""
        return ast.walk(self.node)

    def __deepcopy__(self, _: Any) -> Function:
        return self


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the source, at its own defaults."""

    cls: Any

    def __deepcopy__(self, _: Any) -> Instance:
        return self
