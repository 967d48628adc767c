"""The arguments a start-up log prints, as Python prints a dict, as plain data."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_DICT = re.compile(r"non-default args: (\{.*)")
_NAMESPACE = re.compile(r"\bargs: (Namespace\(.*)")
_CONFIG = re.compile(r"LLM engine \(v[^)]*\) with config: (.*)")
_OBJECT = re.compile(r"<(?:class '[^'<>]*'|[^'<>]*(?:'[^'<>]*')?[^'<>]*)>")  # <Mode.NONE: 0>
_LONGEST = 200_000  # characters of a line that are read as Python

# What vLLM prints of older versions as it stands (0.11 and later redact it).
_SECRETS = ("api_key", "hf_token", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs")
# Of the engine's config: what sizes an instance, under the names of the arguments.
_OF_CONFIG = {
    "model": re.compile(r"(?:^|[ ,])model='([^']*)'"),
    "max_model_len": re.compile(r"\bmax_seq_len=(\d+)"),
    "tensor_parallel_size": re.compile(r"\btensor_parallel_size=(\d+)"),
    "pipeline_parallel_size": re.compile(r"\bpipeline_parallel_size=(\d+)"),
    "data_parallel_size": re.compile(r"\bdata_parallel_size=(\d+)"),
    "decode_context_parallel_size": re.compile(r"\bdecode_context_parallel_size=(\d+)"),
    "quantization": re.compile(r"\bquantization=(\w+)"),
    "kv_cache_dtype": re.compile(r"\bkv_cache_dtype='?(\w+)"),
    "dtype": re.compile(r"\bdtype=torch\.(\w+)"),
    "enforce_eager": re.compile(r"\benforce_eager=(True|False)"),
    "enable_prefix_caching": re.compile(r"\benable_prefix_caching=(True|False)"),
}
_PLAIN = {"True": True, "False": False, "None": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedArguments:
    """Arguments by dest name; ``unread`` names those whose values are secret or no plain data."""

    kind: str  # "non-default args", "args" (every one, with its default) or "config"
    values: Mapping[str, Any]
    unread: tuple[str, ...] = field(default=())


def read_arguments(text: str) -> LoggedArguments | None:
    """The arguments of one line, or None where it has none or they are cut off.

    Args:
        text: the message of a line, without its prefix.
    """
    if len(text) > _LONGEST:
        return None
    if "non-default args: " in text and (found := _DICT.search(text)) is not None:
        return _pairs("non-default args", found[1])
    if "args: Namespace(" in text and (found := _NAMESPACE.search(text)) is not None:
        return _pairs("args", found[1])
    if " with config: " in text and (found := _CONFIG.search(text)) is not None:
        values = {
            name: _plain(name, match[1])
            for name, pattern in _OF_CONFIG.items()
            if (match := pattern.search(found[1])) is not None
        }
        # Drafts take memory, and the line prints them in a form of its own.
        drafts = "speculative_config=" in text and "speculative_config=None" not in text
        unread = ("speculative_config",) if drafts else ()
        return LoggedArguments(kind="config", values=values, unread=unread) if values else None
    return None


def _plain(name: str, text: str) -> Any:
    if text in _PLAIN:
        return _PLAIN[text]
    return int(text) if text.isdecimal() and name != "model" else text


def _pairs(kind: str, text: str) -> LoggedArguments | None:
    tree = _parsed(text.strip())
    if isinstance(tree, ast.Dict):
        pairs = [(_name(key), value) for key, value in zip(tree.keys, tree.values, strict=True)]
    elif isinstance(tree, ast.Call):
        pairs = [(keyword.arg or "", keyword.value) for keyword in tree.keywords]
    else:
        return None
    values: dict[str, Any] = {}
    unread: list[str] = []
    for name, node in pairs:
        if not name:
            continue
        try:
            value = _value(node)
        except (ValueError, TypeError, RecursionError):
            unread.append(name)
            continue
        if name in _SECRETS and value is not None:
            unread.append(name)
        else:
            values[name] = value
    return LoggedArguments(kind=kind, values=values, unread=tuple(unread))


def _parsed(text: str) -> ast.expr | None:
    """The text as an expression; once more with ``<Enum.NAME: 1>`` made into a name."""
    for candidate in (text, _OBJECT.sub("unread", text)):
        try:
            return ast.parse(candidate, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _name(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _value(node: ast.expr) -> Any:
    """Plain data; a configuration object becomes the dict of what it was made with."""
    if isinstance(node, ast.Call) and not node.args:
        made = {k.arg: _value(k.value) for k in node.keywords if k.arg}
        return {name: value for name, value in made.items() if value is not None}
    value = ast.literal_eval(node)
    if isinstance(value, bytes | complex | set) or value is ...:
        raise TypeError("no value of an argument")
    return list(value) if isinstance(value, tuple) else value
