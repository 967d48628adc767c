"""The one Jinja environment, and the filters that carry values into files.

Templates only place values, and every value goes through a filter: into a shell script through
``sh_word`` or ``comment``, into YAML through ``yaml_str`` (text), ``to_yaml`` (anything),
``yaml_block`` (a mapping over several lines) or ``comment``, into XML through ``xml``, into
nginx's files through ``nginx_word`` or ``comment``.
"""

from __future__ import annotations

import html
import re
import shlex
import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vllm_advisor.errors import OutputError
from vllm_advisor.render.markdown_text import code_block, code_span, markdown
from vllm_advisor.resources import templates
from vllm_advisor.units import format_bytes, format_small, format_tokens
from vllm_advisor.visible import visible

COMMENT_WIDTH = 88
_HUNDREDTH = 0.01  # below it two decimals say nothing
_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9._/-]+")
_NGINX_WORD = re.compile(r"[A-Za-z0-9@:/.,+>_\[\]-]+")
# A regular expression between quotes: no quote and no backslash, so it ends where it is meant to.
_NGINX_PATTERN = re.compile(r"~[A-Za-z0-9^$*(){}|,.\[\]-]+")
_ONE_LINE = 1 << 30  # no line of YAML is that long


def shell_word(value: object) -> str:
    """One word of a shell command, quoted where it has to be."""
    return shlex.quote(str(value))


class _Quoting(yaml.SafeDumper):
    """Quotes every text but plain keys, and repeats what occurs twice instead of naming it."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def represent_mapping(self, tag: str, mapping: Any, flow_style: Any = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and _PLAIN_KEY.fullmatch(key.value):
                key.style = None  # quoted all the same where it would read as another type
        return node


_Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def to_yaml(value: Any) -> str:
    r"""A value on one line, in flow style, that every YAML parser reads as this value and type.

    Text is always quoted: ``yes``, ``1e3``, ``0o17`` and ``12:30`` are text to one YAML parser and
    something else to the next.
    """
    return _dump(value, flow=True).split("\n", 1)[0]  # after a bare scalar the document ends


def yaml_block(value: Mapping[str, Any], indent: int = 0) -> str:
    """A mapping with a key on each line, to stand under its own key, ``indent`` columns in."""
    return textwrap.indent(_dump(dict(value), flow=False).rstrip("\n"), " " * indent)


def yaml_item(value: Mapping[str, Any], indent: int = 0) -> str:
    """A mapping as an item of a list, its keys in one column behind ``- ``, ``indent`` in."""
    start = " " * indent + "- "
    return start + yaml_block(value, len(start)).lstrip(" ")


def _dump(value: Any, *, flow: bool) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_Quoting,
        default_flow_style=flow,
        allow_unicode=True,
        sort_keys=False,
        width=_ONE_LINE,
    )
    return text


def yaml_str(value: object) -> str:
    """Text as a quoted YAML scalar, whatever it was: an annotation of ``8`` is ``"8"``."""
    return to_yaml(str(value))


def nginx_word(value: object) -> str:
    """One word of nginx's configuration; patterns (``~...``) are quoted, for their braces.

    Its quoting cannot carry every text, so only names, numbers, addresses and patterns are let in.

    Raises:
        OutputError: there is a character that could be anything else than part of such a word.
    """
    text = str(value)
    if _NGINX_PATTERN.fullmatch(text):
        return f'"{text}"'
    if not _NGINX_WORD.fullmatch(text):
        raise OutputError(f"{text!r} cannot stand in a file of nginx", where="nginx.conf")
    return text


def comment(text: object, indent: int = 0, width: int = COMMENT_WIDTH) -> str:
    """Text as ``# `` lines; what it contains can neither end the comment nor hide in it.

    Args:
        text: anything; newlines in it become spaces. Lines after ``- `` hang under its first word.
        indent: columns before the ``#``.
        width: longest line, where words allow it.
    """
    start = " " * indent + "# "
    shown = visible(str(text))
    lines = textwrap.wrap(
        shown,
        width,
        initial_indent=start,
        subsequent_indent=start + ("  " if shown.startswith("- ") else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) or start.rstrip()


def number(value: float | None) -> str:
    """A count or a price for people: thousands separated, decimals where they say something."""
    if value is None:
        return "unknown"
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < _HUNDREDTH:
        return format_small(value)
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def quantity(value: float, unit: str) -> str:
    """A figure's value with its unit."""
    if unit == "bytes":
        return format_bytes(int(value))
    return f"{number(value)} {unit}".rstrip()


def xml_text(value: object) -> str:
    """Text or a number inside an XML element or a quoted attribute."""
    return html.escape(visible(str(value)))


@cache
def environment() -> Environment:
    """The environment; a name that a template misspells is an error, never an empty string."""
    made = Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - no HTML: shell, YAML and Markdown have filters of their own
    )
    made.filters.update(
        sh_word=shell_word,
        to_yaml=to_yaml,
        yaml_block=yaml_block,
        yaml_item=yaml_item,
        yaml_str=yaml_str,
        nginx_word=nginx_word,
        comment=comment,
        bytes=format_bytes,
        tokens=format_tokens,
        number=number,
        md=markdown,
        code=code_span,
        fence=code_block,
        xml=xml_text,
    )
    return made


def render_template(name: str, view: Mapping[str, Any]) -> str:
    """The text of one template, filled in.

    Args:
        name: path under ``templates/``.
        view: the values, already computed.
    """
    return environment().get_template(name).render(view)
