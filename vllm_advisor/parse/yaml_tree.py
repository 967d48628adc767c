"""YAML as people write it for Kubernetes, Helm and Compose, every value with its place.

Several documents, anchors, aliases, merge keys, flow and block style are followed; a key that
stands twice is told, and the last one counts. What aliases make of a text is bounded
(:data:`MAX_VALUES`), as are its size and its depth. Values are plain data as YAML 1.1 has them,
but keys are text as written, and dates, times and ``1:30`` stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml
from yaml.constructor import SafeConstructor

from vllm_advisor.errors import InputError
from vllm_advisor.parse.placed import Placed, PlacedText
from vllm_advisor.parse.yaml_scalars import placed_text
from vllm_advisor.types.decision import Location
from vllm_advisor.yaml_errors import refuse_unprintable, syntax_error

KeyPath: TypeAlias = tuple[str | int, ...]
MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 100
MAX_VALUES = 100_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # C where libyaml was built in
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_TEXT = f"{_TAG}str"
_WHOLE = re.compile(r"[-+]?\d{1,40}")
_CONSTRUCTOR = SafeConstructor()


# Line and column (from 0) of a key or an item, line and column of its value, where the value
# begins and ends in the text, and a scalar as written, None for anything else. A plain tuple of
# plain values: Python's garbage collector forgets these, and a folder has a million of them.
Mark: TypeAlias = tuple[int, int, int, int, int, int, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """One document of a file; ``repeated`` are the keys that stand twice."""

    file: str
    text: str
    data: Any
    marks: Mapping[KeyPath, Mark]
    repeated: tuple[Placed[str], ...] = ()

    @property
    def root(self) -> YamlValue:
        """The whole document."""
        return YamlValue(document=self, path=(), value=self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlValue:
    """A value in a document. One that is not there is ``None`` and stands at its parent's place."""

    document: YamlDocument
    path: KeyPath
    value: Any

    def at(self, *keys: str | int) -> YamlValue:
        """The value below keys and indices."""
        value = self.value
        for key in keys:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                value = None
        return YamlValue(document=self.document, path=(*self.path, *keys), value=value)

    def __bool__(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def location(self) -> Location:
        """Where the key or the item begins, or the nearest parent that is written."""
        path = self.path
        while path not in self.document.marks:
            path = path[:-1]
        line, column, *_ = self.document.marks[path]
        return Location(file=self.document.file, line=line + 1, column=column + 1)

    @property
    def value_location(self) -> Location:
        """Where the value itself begins, behind its key."""
        mark = self.document.marks.get(self.path)
        if mark is None:
            return self.location
        return Location(file=self.document.file, line=mark[2] + 1, column=mark[3] + 1)

    @property
    def key(self) -> str:
        """The last key of the path."""
        return str(self.path[-1]) if self.path else ""

    def items(self) -> Iterator[YamlValue]:
        """The items of a list; none of anything else."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield YamlValue(document=self.document, path=(*self.path, index), value=value)

    def entries(self) -> Iterator[YamlValue]:
        """The values of a mapping, each with its key; none of anything else."""
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                yield YamlValue(document=self.document, path=(*self.path, key), value=value)

    def mapping(self) -> Mapping[str, Any]:
        """The value if it is a mapping, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def string(self) -> str:
        """A scalar as it is written, without quotes; empty for anything else."""
        mark = self.document.marks.get(self.path)
        return "" if mark is None or self.value is None else mark[6] or ""

    def placed_string(self) -> Placed[str] | None:
        """:meth:`string` with its place, or nothing where there is none."""
        return Placed(self.string(), self.location) if self.string() else None

    def placed_integer(self) -> Placed[int] | None:
        """A whole number, also one in quotes."""
        text = self.string()
        return Placed(int(text), self.location) if _WHOLE.fullmatch(text) else None

    def placed_boolean(self) -> Placed[bool] | None:
        """A boolean, also one in quotes."""
        text = self.string().lower()
        if isinstance(self.value, bool):
            return Placed(self.value, self.location)
        return Placed(text == "true", self.location) if text in ("true", "false") else None

    def placed_text(self) -> PlacedText | None:
        """A scalar's text with the places of all of its characters; None for no scalar."""
        mark = self.document.marks.get(self.path)
        if mark is None:
            return None
        _, _, line, column, start, end, text = mark
        if text is None:
            return None
        written = self.document.text[start:end]
        return placed_text(written, text, self.document.file, line=line, column=column)


def load_yaml(text: str, file: str) -> list[YamlDocument]:
    """Every document of a text that is not empty.

    Args:
        text: the YAML text.
        file: the name that places and errors give it.

    Raises:
        InputError: the text is no YAML, or larger or deeper than what is read; ``where`` is
            ``file:line:column``.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        what = f"the file has {len(text):,} characters; {MAX_CHARACTERS:,} is the most that is read"
        raise InputError(what, where=file, fix="check that this is the file you meant")
    refuse_unprintable(text, file)
    documents = []
    try:
        for root in yaml.compose_all(text, Loader=_LOADER):
            builder = _Builder(file)
            data = builder.build(root, (), 0)
            if data is not None:
                documents.append(
                    YamlDocument(
                        file=file,
                        text=text,
                        data=data,
                        marks={(): _mark(root, root), **builder.marks},
                        repeated=tuple(builder.repeated),
                    )
                )
    except yaml.MarkedYAMLError as error:
        raise syntax_error(error, text, file) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"this is not YAML: {str(error)[:200]}", where=file) from None
    return documents


@dataclass(slots=True)
class _Builder:
    """Builds the plain data of one document and notes where each part of it stands."""

    file: str
    marks: dict[KeyPath, Mark] = field(default_factory=dict)
    repeated: list[Placed[str]] = field(default_factory=list)
    count: int = 0

    def build(self, node: Any, path: KeyPath, depth: int) -> Any:
        """The data of a node; fills ``marks`` for everything below it."""
        self.count += 1
        if depth > MAX_DEPTH:
            what, fix = f"nested more than {MAX_DEPTH} levels deep", "check the brackets"
            raise InputError(what, where=str(_place(node, self.file)), fix=fix)
        if self.count > MAX_VALUES:
            what = f"the text has more than {MAX_VALUES:,} values once its aliases are followed"
            fix = "split the file, or write out what the aliases (*name) stand for"
            raise InputError(what, where=str(_place(node, self.file)), fix=fix)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                below = (*path, index)
                self.marks[below] = _mark(item, item)
                items.append(self.build(item, below, depth + 1))
            return items
        return self._mapping(node, path, depth) if isinstance(node, yaml.MappingNode) else None

    def _mapping(self, node: Any, path: KeyPath, depth: int) -> dict[str, Any]:
        mapping = self._merged(node, path, depth)
        own = set[str]()
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            if key in own:
                self.repeated.append(Placed(key, _place(key_node, self.file)))
            own.add(key)
            below = (*path, key)
            self.marks[below] = _mark(key_node, value_node)
            mapping[key] = self.build(value_node, below, depth + 1)
        return mapping

    def _merged(self, node: Any, path: KeyPath, depth: int) -> dict[str, Any]:
        """What merge keys bring, of which the first one wins; the mapping's own keys come after."""
        sources: list[Any] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                several = isinstance(value_node, yaml.SequenceNode)
                sources += value_node.value if several else [value_node]
        mapping: dict[str, Any] = {}
        for source in reversed(sources):
            if isinstance(source, yaml.MappingNode):
                mapping |= self.build(source, path, depth + 1)
        return mapping


def _mark(key: Any, node: Any) -> Mark:
    at, start = key.start_mark, node.start_mark
    text = node.value if isinstance(node, yaml.ScalarNode) else None
    return (at.line, at.column, start.line, start.column, start.index, node.end_mark.index, text)


def _place(node: Any, file: str) -> Location:
    mark = node.start_mark
    return Location(file=file, line=mark.line + 1, column=mark.column + 1)


def _scalar(node: yaml.ScalarNode) -> Any:
    """The value YAML 1.1 reads; what it cannot make a value of stays text."""
    text = node.value
    if node.tag == _TEXT:
        return text
    kind = node.tag.removeprefix(_TAG)
    if kind == "null":
        return None
    try:
        if kind == "bool":
            return _CONSTRUCTOR.construct_yaml_bool(node)
        if kind in ("int", "float") and ":" not in text and len(text) <= 100:
            read = _CONSTRUCTOR.construct_yaml_int if kind == "int" else _FLOAT
            return read(node)
    except (ValueError, KeyError, OverflowError):
        return text
    return text


_FLOAT = _CONSTRUCTOR.construct_yaml_float
