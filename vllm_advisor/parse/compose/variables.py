"""``$NAME`` and ``${NAME:-default}`` in a Compose file.

The environment of whoever starts it, and its .env file, are not known here: a variable has its
default, or stays as it is written and is unresolved.
"""

from __future__ import annotations

import re

from vllm_advisor.parse.placed import PlacedText
from vllm_advisor.parse.yaml_tree import YamlValue

_VARIABLE = re.compile(
    r"\$(?:\$|(?P<open>\{)?(?P<name>[A-Za-z_]\w*)"
    r"(?(open)(?:(?P<how>:?[-?+])(?P<rest>(?:[^{}]|\{[^{}]*\})*))?\}))"
)


def text_at(view: YamlValue) -> PlacedText | None:
    """A scalar with its variables put in; None where there is none."""
    text = None if view.value is None else view.placed_text()
    return None if text is None else text.replaced(_VARIABLE, _value)


def string_at(view: YamlValue) -> str:
    """The text of :func:`text_at`; empty where there is none."""
    text = text_at(view)
    return "" if text is None else text.text


def _value(match: re.Match[str]) -> str | None:
    if match["name"] is None:
        return "$"
    if not (match["how"] or "").endswith("-"):
        return None
    nested = _VARIABLE.sub(lambda inner: _value(inner) or "", match["rest"])
    return None if _VARIABLE.search(match["rest"]) and not nested else nested
