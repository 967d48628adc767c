"""Commands whose options and arguments are read without pydantic, where they need none.

typer builds a pydantic adapter for every parameter of a command, given or not; importing pydantic
and building them takes longer than sizing a model. What is absent, text, a whole number in range
and the name of a choice are understood here; everything else, and every message, stays typer's.
Releases of typer that have no such adapters (before 0.29) are left as they are.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command whose parameters ask typer's adapters only if they have to."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, ``--help`` among them."""
        return _plain(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """The same for what stands before a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, ``--help`` among them."""
        return _plain(super().get_params(ctx))


def _plain(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", parameter) is None:
            parameter._runtime_param = _PlainValue()  # noqa: SLF001
    return parameters


class _PlainValue:
    """Takes the place of typer's adapter of one parameter until a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command's annotation says, or what typer makes of it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        kind, limits = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if several:
            if kind == list[str] and not isinstance(value, str):
                return list(value)
        elif type(value) is kind:
            return value
        elif kind is int and str(value).isdecimal() and int(value) >= (limits.min or 0):
            if limits.max is None:
                return int(value)
        elif isinstance(kind, type) and issubclass(kind, Enum) and value in set(kind):
            return kind(value)
        param._runtime_param = None  # noqa: SLF001
        try:
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's own words
            raise
