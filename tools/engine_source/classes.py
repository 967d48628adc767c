"""The classes of a source: their bases, fields, attributes and documentation."""

from __future__ import annotations

import ast
import inspect
import itertools
import typing
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from engine_source.modules import Module
from engine_source.values import (
    Field,
    FieldDefault,
    Function,
    Instance,
    Member,
    NotReadError,
    SourceClassMeta,
    Unknown,
)

if TYPE_CHECKING:
    from engine_source.interpreter import Interpreter

_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")


class SourceClasses:
    """Classes as values, and what is asked of them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._attributes: dict[tuple[Any, str], Any] = {}
        self._lineages: dict[Any, list[Any]] = {}

    def define(self, node: ast.ClassDef, module: Module) -> Any:
        """The value of a ``class`` statement."""
        return SourceClassMeta(
            node.name, (), {"__module__": module.name, "node": node, "scope": module}
        )

    def lineage(self, cls: Any) -> list[Any]:
        """The class and its bases that are written in the source, nearest first."""
        if cls not in self._lineages:
            found = self._lineages[cls] = [cls]
            for base in self.bases(cls):
                if isinstance(base, SourceClassMeta):
                    found += [c for c in self.lineage(base) if c not in found]
        return self._lineages[cls]

    def bases(self, cls: Any) -> list[Any]:
        """Direct bases, as values."""
        return [self._interpreter.evaluate(b, cls.scope, {}) for b in cls.node.bases]

    def issubclass(self, cls: Any, base: Any) -> bool:
        """``issubclass``, also of classes of the source."""
        if not isinstance(cls, SourceClassMeta):
            return issubclass(cls, base)
        for one in self.lineage(cls):
            bases = [typing.get_origin(b) or b for b in self.bases(one)]
            if one is base or base in bases:
                return True
        return False

    def is_enum(self, cls: Any) -> bool:
        """Whether a class of the source is an enum."""
        for one in self.lineage(cls):
            for base in self.bases(one):
                if (
                    not isinstance(base, SourceClassMeta)
                    and getattr(base, "__name__", "") in _ENUMS
                ):
                    return True
        return False

    def is_dataclass(self, value: Any) -> bool:
        """``dataclasses.is_dataclass``."""
        cls = value.cls if isinstance(value, Instance) else value
        if not isinstance(cls, SourceClassMeta):
            return False
        return any(self.decorator(one) is not None for one in self.lineage(cls))

    def decorator(self, cls: Any) -> ast.expr | None:
        """The decorator that makes a dataclass of a class."""
        for decorator in cls.node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(function).rpartition(".")[2] in ("dataclass", "config"):
                return decorator
        return None

    def members(self, cls: Any) -> list[Member]:
        """Members of an enum in their order."""
        found = []
        for statement in cls.node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                if not name.startswith("_"):
                    found.append(self.attribute(cls, name))
        return found

    def attribute(self, cls: Any, name: str) -> Any:
        """An attribute of a class: a method bound to it, a member, or the value of a field.

        Raises:
            NotReadError: there is none in the source.
        """
        if name == "__name__":
            return cls.__name__
        if name == "__doc__":
            return ast.get_docstring(cls.node)
        if name == "__members__":
            return {member.name: member for member in self.members(cls)}
        for one in self.lineage(cls):
            if (one, name) not in self._attributes:
                self._attributes[one, name] = self._own(one, name)
            value = self._attributes[one, name]
            if value is not MISSING:
                if isinstance(value, Function):
                    static = any(
                        ast.unparse(d) == "staticmethod"
                        for d in getattr(value.node, "decorator_list", ())
                    )
                    bound = None if static else cls
                    return Function(
                        value.node, value.scope, value.closure, value.defaults, bound, one
                    )
                return value
        raise NotReadError(f"{cls.__name__} has no {name}")

    def _own(self, cls: Any, name: str) -> Any:
        value: Any = MISSING
        for statement in cls.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                value = Function(statement, cls.scope, {})
            elif isinstance(statement, ast.ClassDef) and statement.name == name:
                value = self.define(statement, cls.scope)
            elif isinstance(statement, ast.Assign):
                if any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
                    value = self._evaluated(cls, statement.value)
                    if self.is_enum(cls) and not name.startswith("_"):
                        value = Member(cls, name, value)
            elif (
                isinstance(statement, ast.AnnAssign)
                and statement.value is not None
                and isinstance(statement.target, ast.Name)
                and statement.target.id == name
            ):
                value = self._evaluated(cls, statement.value)
        if isinstance(value, FieldDefault):
            return value.default if value.default is not MISSING else self.made(value)
        return value

    def _evaluated(self, cls: Any, value: ast.expr) -> Any:
        try:
            return self._interpreter.evaluate(value, cls.scope, _ClassScope(self, cls))
        except NotReadError as error:
            return Unknown(str(error))

    def made(self, default: FieldDefault) -> Any:
        """What a default factory makes."""
        return self._interpreter.call(default.default_factory)

    def fields(self, cls: Any) -> list[Field]:
        """``dataclasses.fields``: those of the bases first."""
        if not isinstance(cls, SourceClassMeta):
            raise NotReadError(f"the fields of {cls!r}")
        found: dict[str, Field] = {}
        for one in reversed(self.lineage(cls)):
            for statement in one.node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    field = self._field(one, statement, statement.target.id)
                    if field is not None:
                        found[field.name] = field
        return list(found.values())

    def _field(self, cls: Any, statement: ast.AnnAssign, name: str) -> Field | None:
        written = ast.unparse(statement.annotation)
        if written.startswith(("ClassVar", "typing.ClassVar", "InitVar", "dataclasses.InitVar")):
            return None
        try:
            annotation = self._interpreter.evaluate(
                statement.annotation, cls.scope, _ClassScope(self, cls)
            )
        except NotReadError as error:
            annotation = Unknown(str(error))
        default: Any = MISSING
        factory: Any = MISSING
        if statement.value is not None:
            default = self._evaluated(cls, statement.value)
            if isinstance(default, FieldDefault):
                default, factory = default.default, default.default_factory
        return Field(name, annotation, default, factory)

    def field_default(self, *args: Any, **kwargs: Any) -> FieldDefault:
        """``dataclasses.field`` and pydantic's ``Field``."""
        default = args[0] if args else kwargs.get("default", MISSING)
        if default is Ellipsis:
            default = MISSING
        return FieldDefault(default, kwargs.get("default_factory", MISSING))

    def field_of(self, cls: Any, name: str) -> FieldDefault:
        """vLLM's ``get_field``: the default of another class's field."""
        for field in self.fields(cls):
            if field.name == name:
                return FieldDefault(field.default, field.default_factory)
        raise NotReadError(f"{cls.__name__} has no field {name}")

    def docs(self, cls: Any) -> dict[str, str]:
        """vLLM's ``get_attr_docs``: the strings that follow the fields."""
        found = {}
        for one in reversed(self.lineage(cls)):
            for field, text in itertools.pairwise(one.node.body):
                if not isinstance(text, ast.Expr) or not isinstance(text.value, ast.Constant):
                    continue
                targets = (
                    field.targets
                    if isinstance(field, ast.Assign)
                    else [getattr(field, "target", None)]
                )
                for target in targets:
                    if isinstance(target, ast.Name) and isinstance(text.value.value, str):
                        found[target.id] = inspect.cleandoc(text.value.value)
        return _DocsOf(found)

    def forbids_extra(self, cls: Any) -> bool:
        """Whether pydantic refuses a key that is no field of a dataclass."""
        decorator = self.decorator(cls)
        if decorator is None:
            return False
        if 'extra="forbid"' in ast.unparse(decorator).replace("'", '"'):
            return True
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not isinstance(name, ast.Name) or name.id != "config":
            return False
        function = self._interpreter.evaluate(name, cls.scope, {})
        if not isinstance(function, Function):
            return False
        return 'extra="forbid"' in ast.unparse(function.node).replace("'", '"')


class _DocsOf(dict):  # type: ignore[type-arg]
    """Documentation by field; a field without any has the empty text."""

    def __missing__(self, key: str) -> str:
        return ""


class _ClassScope(dict):  # type: ignore[type-arg]
    """The names of a class body, as far as they are asked for."""

    def __init__(self, classes: SourceClasses, cls: Any) -> None:
        super().__init__()
        self._classes = classes
        self._cls = cls
        self._names = {
            t.id
            for s in cls.node.body
            if isinstance(s, ast.Assign | ast.AnnAssign) and getattr(s, "value", None) is not None
            for t in (s.targets if isinstance(s, ast.Assign) else [s.target])
            if isinstance(t, ast.Name)
        }

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Any:
        return self._classes.attribute(self._cls, name)
