"""YAML with positions: plain data, and for every key path the line and column it stands at.

YAML 1.1, as vLLM reads its own ``--config`` files. Anchors, aliases, merge keys and explicit tags
are refused rather than followed: the files read here need none, each value then has exactly one
place, and no file can expand to more than its own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml
from yaml.constructor import SafeConstructor

from vllm_advisor.errors import InputError
from vllm_advisor.yaml_errors import refuse_unprintable, syntax_error

KeyPath: TypeAlias = tuple[str | int, ...]  # ("classes", 0, "name")
MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 100
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # C where libyaml was built in
_MERGE_TAG = "tag:yaml.org,2002:merge"
_TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedYaml:
    """A YAML mapping and where each of its parts stands.

    ``marks`` has 1-based ``(line, column)`` of the key, or of the item in a list.
    """

    file: str
    data: dict[str, Any]
    marks: dict[KeyPath, tuple[int, int]]

    def position(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of a key path, or of its nearest parent that is in the file."""
        while path not in self.marks:
            path = path[:-1]
        return self.marks[path]

    def where(self, path: KeyPath) -> str:
        """``file:line:column`` of a key path, or of its nearest parent that is in the file."""
        line, column = self.position(path)
        return f"{self.file}:{line}:{column}"


def load_marked(text: str, file: str) -> MarkedYaml:
    """Read one YAML mapping with its positions.

    Args:
        text: the YAML text.
        file: the name that errors give the text.

    Raises:
        InputError: the text is no single YAML mapping of plain values, repeats a key, or is larger
            or deeper than any file of ours; ``where`` is ``file:line:column``.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        what = f"the file has {len(text):,} characters; {MAX_CHARACTERS:,} is the most that is read"
        raise InputError(what, where=file, fix="check that this is the file you meant")
    refuse_unprintable(text, file)
    try:
        _refuse_unread_yaml(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise syntax_error(error, text, file) from None
    except yaml.YAMLError as error:
        raise InputError(f"this is not YAML: {error}", where=file) from None
    if root is None:
        raise InputError("the file is empty", where=f"{file}:1:1", fix="write 'key: value' lines")
    if not isinstance(root, yaml.MappingNode):
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "one plain value"
        what = f"the file is {kind}, not a mapping of keys to values"
        fix = "write 'key: value' lines, with a space after each colon"
        raise InputError(what, where=_place(root, file), fix=fix)
    marks: dict[KeyPath, tuple[int, int]] = {(): _position(root)}
    data = _build(root, (), marks, file)
    return MarkedYaml(file=file, data=data, marks=marks)


def _position(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _place(node: Any, file: str) -> str:
    line, column = _position(node)
    return f"{file}:{line}:{column}"


def _refuse_unread_yaml(text: str, file: str) -> None:
    """Refuse what is YAML but is not read here, before anything is built from it."""
    depth = documents = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        what = fix = ""
        if documents > 1:
            what, fix = "the file holds a second document", "keep one document: remove this '---'"
        elif depth > MAX_DEPTH:
            what, fix = f"nested more than {MAX_DEPTH} levels deep", "check the brackets"
        elif getattr(event, "anchor", None) is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            what = f"anchors and aliases ({sign}{event.anchor[:40]}) are not read here"
            fix = "write the value out; put a text that starts with & or * in quotes"
        elif getattr(event, "tag", None) is not None:
            what = f"YAML tags ({event.tag[:40]}) are not read here"
            fix = "write the plain value; put a text that starts with ! in quotes"
        if what:
            raise InputError(what, where=_place(event, file), fix=fix)


def _build(node: Any, path: KeyPath, marks: dict[KeyPath, tuple[int, int]], file: str) -> Any:
    """Plain data of a node; fills ``marks`` for everything below it."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, file)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            marks[(*path, index)] = _position(item)
            items.append(_build(item, (*path, index), marks, file))
        return items
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(key_node, file)
        if key in mapping:
            first = marks[(*path, key)][0]
            what = f"the key '{key}' stands twice: here and on line {first}"
            raise InputError(what, where=_place(key_node, file), fix="remove one of the two")
        marks[(*path, key)] = _position(key_node)
        mapping[key] = _build(value_node, (*path, key), marks, file)
    return mapping


def _key(node: Any, file: str) -> str:
    """A key, which has to be text: YAML 1.1 reads ``on``, ``1.0`` or ``2024-01-01`` as others."""
    where = _place(node, file)
    if not isinstance(node, yaml.ScalarNode):
        raise InputError("a key has to be one word", where=where, fix="write 'key: value'")
    if node.tag == _MERGE_TAG:
        raise InputError("merge keys (<<) are not read here", where=where, fix="write the keys out")
    key = _scalar(node, file)
    if not isinstance(key, str):
        what = f"the key '{node.value[:40]}' is not read as text but as {type(key).__name__}"
        fix = f'put it in quotes: "{node.value[:40]}":'
        if isinstance(key, int):  # {tokens: 8,192}
            fix = f"{fix} or, if it is the end of a number, write that without commas"
        raise InputError(what, where=where, fix=fix)
    return key


def _scalar(node: yaml.ScalarNode, file: str) -> Any:
    """The value YAML 1.1 reads; text that only looks like a number or date is an error."""
    if node.tag == _TEXT_TAG:
        return node.value
    try:
        if len(node.value) <= MAX_NUMBER_CHARACTERS:
            return SafeConstructor().construct_object(node)
    except (ValueError, OverflowError, yaml.YAMLError):  # 0b_, 2024-13-45, =
        pass
    what = f"the value {node.value[:40]!r} looks like a number or a date but is none"
    raise InputError(what, where=_place(node, file), fix="put it in quotes if it is text")
