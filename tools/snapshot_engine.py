"""Writes ``profiles/engines/<version>.yaml``: the ``vllm serve`` flags as the real parser has them.

Run it with the Python of an environment that has the vLLM to record::

    python tools/snapshot_engine.py --output-dir profiles/engines

Option strings come from ``parser._option_string_actions``, not from help: spellings that are hidden
from help still parse. What an option string sets comes from calling its action, so every kind of
boolean action is covered. Some values are checked after parsing, against a type of the
configuration (``kv_cache_dtype``, ``quantization``, the keys of JSON options): those choices are
read there. The file is JSON, one flag per line, because that loads an order of magnitude faster
than other YAML.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import importlib.metadata
import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

PARSER_MODULES = (  # newest first
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)
_POSITIONAL = "model_tag"
_OWN_KINDS = {  # of vLLM's own type functions
    "human_readable_int_or_auto": "tokens_or_auto",
    "human_readable_int": "tokens",
    "union_dict_and_str": "json_or_text",
}
_ON_NVIDIA = {"mm_processor_device": "cuda"}  # choices that a vLLM for CPUs does not offer
_SAYS_DEPRECATED = re.compile(r"\b(is|are) deprecated\b|^\W*deprecated\b", re.IGNORECASE)


def load_parser() -> tuple[argparse.ArgumentParser, str]:
    """The parser of ``vllm serve`` and the module it was found in.

    Raises:
        SystemExit: no vLLM here, or one that keeps its parser elsewhere.
    """
    # vLLM fills in help texts, which carry the deprecations, only when help is asked for.
    argv, sys.argv = sys.argv, [sys.argv[0], "--help"]
    try:
        try:
            argparse_utils = importlib.import_module("vllm.utils.argparse_utils")
        except ModuleNotFoundError as error:
            sys.exit(f"there is no vLLM in this environment: {error}")
        for name in PARSER_MODULES:
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if not name.startswith(error.name or "-"):
                    raise
            else:
                return module.make_arg_parser(argparse_utils.FlexibleArgumentParser()), name
    finally:
        sys.argv = argv
    sys.exit(f"this vLLM keeps its parser in none of {', '.join(PARSER_MODULES)}")


def vllm_version() -> str:
    """Version of the vLLM at hand, without a local part such as ``+cpu``."""
    return importlib.metadata.version("vllm").partition("+")[0]


def _value_types(function: Any) -> list[Any]:
    """A ``type=`` function and the functions and classes it wraps (``optional_type(int)``)."""
    found = [function]
    for cell in getattr(function, "__closure__", None) or ():
        if callable(cell.cell_contents):
            found += _value_types(cell.cell_contents)
    for default in getattr(function, "__defaults__", None) or ():
        if isinstance(default, type):
            found.append(default)
    return found


def _kind(action: argparse.Action) -> str:
    """One of the kinds of :class:`vllm_advisor.types.engine.Flag`."""
    if action.nargs == 0:
        return "bool"
    names = {getattr(function, "__name__", "") for function in _value_types(action.type)}
    for function, kind in _OWN_KINDS.items():
        if function in names:
            return kind
    if names & {"loads", "parse_dataclass"}:
        return "json"
    return next((kind for kind in ("int", "float") if kind in names), "str")


def _json_keys(action: argparse.Action) -> list[str]:
    """Keys a JSON option takes, when its value is a dataclass that forbids others."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    for config in _value_types(action.type):
        if not dataclasses.is_dataclass(config) or not isinstance(config, type):
            continue
        try:
            TypeAdapter(config).validate_json('{"no_such_key": 1}')
        except ValidationError as error:
            if any(
                e["type"] in ("extra_forbidden", "unexpected_keyword_argument")
                for e in error.errors()
            ):
                return [f.name for f in dataclasses.fields(config) if f.init]
    return []


def _choices(action: argparse.Action) -> list[str]:
    """Values the flag takes, from the parser or from the check that follows parsing."""
    if action.choices is not None:
        more = {_ON_NVIDIA[action.dest]} if action.dest in _ON_NVIDIA else set()
        return [str(c) for c in sorted({c for c in action.choices if c is not None} | more)]
    if action.dest == "kv_cache_dtype":
        cache = importlib.import_module("vllm.config.cache")
        return sorted(get_args(cache.CacheDType))
    if action.dest == "quantization":
        quantization = importlib.import_module("vllm.model_executor.layers.quantization")
        return sorted(quantization.QUANTIZATION_METHODS)
    return sorted(_json_keys(action))


def _plain(value: Any) -> Any:
    """A default as JSON has it; ``None`` for what only vLLM can make."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value == argparse.SUPPRESS:
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value):
        return {}  # a configuration object at its own defaults
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(_plain(v) for v in value)
    return None


def deprecation(text: str, *, marked: bool) -> str | None:
    """The sentence of a help text that says the flag is deprecated."""
    plain = " ".join(text.replace("%%", "%").split())
    for sentence in re.split(r"(?<=[.!])\s+(?=[A-Z`\[(-])", plain):
        if _SAYS_DEPRECATED.search(sentence):
            return sentence.strip()
    return "deprecated" if marked else None


def _deprecation(action: argparse.Action, parser: argparse.ArgumentParser) -> str | None:
    marked = action in getattr(parser, "_deprecated", ()) or getattr(action, "deprecated", False)
    return deprecation(action.help or "", marked=bool(marked))


def _sets_false(parser: argparse.ArgumentParser, action: argparse.Action, option: str) -> bool:
    namespace = argparse.Namespace()
    action(parser, namespace, [], option)
    return getattr(namespace, action.dest) is False


def read_flags(parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """Every flag of the parser as plain data, sorted by dest; empty entries are left out."""
    options: dict[str, list[tuple[str, argparse.Action]]] = {}
    for option, action in parser._option_string_actions.items():  # noqa: SLF001
        if action.dest not in ("help", _POSITIONAL):
            options.setdefault(action.dest, []).append((option, action))
    flags = []
    for dest, pairs in sorted(options.items()):
        action = pairs[0][1]
        kind = _kind(action)
        names = sorted((option for option, _ in pairs), key=spelling_order)
        negations: list[str] = []
        if kind == "bool":
            negations = [o for o, a in pairs if _sets_false(parser, a, o)]
            negations.sort(key=spelling_order)
        flag = {
            "dest": dest,
            "spellings": [name for name in names if name not in negations],
            "negations": negations,
            "kind": kind,
            "nargs": None if kind == "bool" or action.nargs is None else str(action.nargs),
            "choices": _choices(action),
            "default": _plain(action.default),
            "deprecated": _deprecation(action, parser),
        }
        flags.append({k: v for k, v in flag.items() if v not in (None, []) or k == "default"})
    return flags


def spelling_order(option: str) -> tuple[bool, bool]:
    """Long before short, and ``--no-x``, which older versions take too, before other inverses."""
    return (not option.startswith("--"), not option.startswith("--no-"))


def snapshot() -> dict[str, Any]:
    """The snapshot of the vLLM at hand, as :func:`render` writes it."""
    parser, module = load_parser()
    version = vllm_version()
    return {
        "version": version,
        "source": f"vllm:{version}:{module.replace('.', '/')}.py#make_arg_parser",
        "flags": read_flags(parser),
    }


def render(recorded: dict[str, Any]) -> str:
    """The file's text: JSON with one line per flag."""
    head = {
        "about": "Generated by tools/snapshot_engine.py; do not edit. JSON for quick loading. "
        "choices of kind json are the keys it takes; a default of null is decided at start.",
        **{key: value for key, value in recorded.items() if key != "flags"},
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    flags = [f"    {json.dumps(flag)}" for flag in recorded["flags"]]
    return "\n".join(["{", *lines, '  "flags": [', ",\n".join(flags), "  ]", "}", ""])


def main() -> None:
    """Write the snapshot and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output-dir", type=Path, default=Path("profiles/engines"))
    arguments = parser.parse_args()
    recorded = snapshot()
    path = arguments.output_dir / f"{recorded['version']}.yaml"
    path.write_text(render(recorded), encoding="utf-8")
    print(f"{path}: {len(recorded['flags'])} flags")


if __name__ == "__main__":
    main()
