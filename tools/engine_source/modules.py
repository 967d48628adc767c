"""The modules of one vLLM source tree, and what their top-level names mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path


class Module:
    """One file: its statements by the top-level name they bind.

    Args:
        name: ``vllm.config.cache``.
        path: its file.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.is_package = path.name == "__init__.py"

    @cached_property
    def tree(self) -> ast.Module:
        """The file, parsed."""
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        """Statements that bind a name, in their order; what type checkers alone see is left out."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in _statements(self.tree.body):
            for name in _bound(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def stars(self) -> list[ast.ImportFrom]:
        """Imports of all names of another module."""
        return [
            statement
            for statement in _statements(self.tree.body)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"
        ]

    @cached_property
    def checked_imports(self) -> dict[str, list[ast.stmt]]:
        """Imports under ``if TYPE_CHECKING``: what a lazy ``__getattr__`` finds at run time."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            if isinstance(statement, ast.If) and _for_checkers(statement.test):
                for inner in statement.body:
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        for name in _bound(inner):
                            found.setdefault(name, []).append(inner)
        return found

    def checked_lazily(self, name: str) -> list[ast.stmt]:
        """Imports for type checkers that a module-level ``__getattr__`` makes real."""
        return self.checked_imports.get(name, []) if "__getattr__" in self.bindings else []

    def resolved(self, statement: ast.ImportFrom) -> str:
        """The absolute name of the module an import names."""
        if not statement.level:
            return statement.module or ""
        parts = self.name.split(".")
        up = statement.level - (1 if self.is_package else 0)
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, *([statement.module] if statement.module else [])])


class SourceTree:
    """The ``vllm`` package of one release, unpacked.

    Args:
        root: the folder that holds ``vllm/``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @cache  # noqa: B019 - a tree lives as long as its reading
    def module(self, name: str) -> Module | None:
        """A module of vLLM, ``None`` where there is none of this name."""
        if name.partition(".")[0] != "vllm":
            return None  # the folder may be one of installed packages
        base = self.root.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return Module(name, path)
        return None


def _for_checkers(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements a module runs when it is imported, those of plain blocks included."""
    for statement in body:
        if isinstance(statement, ast.If):
            if not _for_checkers(statement.test):
                yield from _statements(statement.body)
            yield from _statements(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _statements(statement.body)
        else:
            yield statement


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and isinstance(
        statement.target, ast.Name
    ):
        yield statement.target.id
