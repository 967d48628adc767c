"""Derive from a Helm chart which values its templates read, and what its schema says of them.

``python tools/chart_keys.py FOLDER --source REPOSITORY@COMMIT`` writes
``tests/data/chart_keys/<chart>-<version>.json``: ``keys``, a tree with ``[]`` for the items of a
list, ``*`` for any name and ``**`` where everything below goes into the output as it is; and
``schema``, the chart's values.schema.json without its prose, where it has one. ``--version`` is
that of a chart whose source has none yet.

Helm ignores a value that no template reads, without a word; that is what the tree is for. The
templates are followed as Go would run them (``with``, ``range``, ``define``, ``include``,
variables), every branch being taken: a key is in the tree if any values make a template read it.
Subcharts are not looked into: what is below their names is taken as it is. A library chart in a
folder beside has no templates of its own to run: its ``define`` blocks are the chart's.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

OUT = Path(__file__).parents[1] / "tests" / "data" / "chart_keys"
COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
ACTION = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')
STRING_WORD = re.compile(r'"(\w+)"')
# $name.path, .path, or the dot itself.
REFERENCE = re.compile(r"(?:\$\w*)?(?:\.[A-Za-z_]\w*)+|\$\w*|(?<![\w.)])\.(?![\w.])")
INDEX = re.compile(r'\bindex\s+(\$?[\w.]+)((?:\s+"\w+")+)')
HAS_KEY = re.compile(r'hasKey\s+(\S+)\s+"(\w+)"')
ASSIGNED = re.compile(r"^\s*(?P<names>\$\w+(?:\s*,\s*\$\w+)*)\s*:?=(?P<value>.*)$", re.DOTALL)
INCLUDE = re.compile(r'(?:include|template)\s+"([^"]+)"\s+([^|)]+)')
AS_IT_IS = re.compile(r"\b(?:toYaml|toJson|tpl)\b")
PROSE = frozenset({"description", "title", "examples", "default", "$comment"})

# Where values may be from, as paths of keys; None: the root context, whose .Values are the values.
Where = frozenset[tuple[str, ...] | None]
ROOT: Where = frozenset({None})
NOWHERE: Where = frozenset()


@dataclass(slots=True)
class Reader:
    """Runs templates without values and notes what they would look at."""

    templates: dict[str, list[str]] = field(default_factory=dict)
    read: set[tuple[str, ...]] = field(default_factory=set)
    done: set[tuple[str, Where]] = field(default_factory=set)

    def load(self, text: str) -> list[str]:
        """The actions of a template file outside of its ``define`` blocks."""
        actions = [one.strip() for one in ACTION.findall(COMMENT.sub("", text))]
        outside: list[str] = []
        inside, depth = outside, 0
        for action in actions:
            word = action.split()[0] if action else ""
            if word == "define":
                inside = self.templates.setdefault(action.split('"')[1], [])
                depth = 0
                continue
            depth += word in ("if", "with", "range")
            if word == "end":
                if not depth and inside is not outside:
                    inside = outside
                    continue
                depth -= 1
            inside.append(action)
        return outside

    def run(self, actions: list[str], dot: Where) -> None:
        """Note what a template reads when it is run with a dot."""
        variables = {"$": dot}
        blocks: list[tuple[Where, Where]] = []  # the dot inside and the dot after
        for action in actions:
            word, _, rest = action.partition(" ")
            if word == "end":
                dot = blocks.pop()[1]
            elif word == "else":
                dot = blocks[-1][1]
                word, _, rest = rest.strip().partition(" ")
                looked = self.look(rest, dot, variables) if rest else NOWHERE
                dot = looked if word == "with" else dot
            elif word in ("if", "with", "range"):
                blocks.append((dot, dot))
                assigned = ASSIGNED.match(rest)
                looked = self.look(assigned["value"] if assigned else rest, dot, variables)
                names = re.findall(r"\$\w+", assigned["names"]) if assigned else []
                if word == "range":
                    looked = below(looked, "*" if len(names) == 2 else "[]")
                    self.read |= {one for one in looked if one}
                if names:
                    variables[names[-1]] = looked
                if word != "if":
                    dot = looked
            elif assigned := ASSIGNED.match(action):
                looked = self.look(assigned["value"], dot, variables)
                name = assigned["names"].strip()
                variables[name] = looked | variables.get(name, NOWHERE)
            else:
                self.look(action, dot, variables)

    def look(self, expression: str, dot: Where, variables: dict[str, Where]) -> Where:
        """Note what an expression reads, and say what it may be the value of."""
        for holder, key in HAS_KEY.findall(expression):
            (held,) = references(holder)
            self.read |= {one for one in below(resolve(held, dot, variables), key) if one}
        expression = INDEX.sub(
            lambda it: ".".join([it[1], *STRING_WORD.findall(it[2])]), expression
        )
        without_keys = HAS_KEY.sub("", expression)
        for name, argument in INCLUDE.findall(without_keys):
            passed = [resolve(one, dot, variables) for one in references(argument)]
            self.read |= {one for where in passed for one in where if one}
            # What is in a dict counts as read where it is made; the template gets words.
            inner = NOWHERE if argument.startswith("(dict") or not passed else passed[0]
            if (name, inner) not in self.done:
                self.done.add((name, inner))
                self.run(self.templates[name], inner)
        value: Where = NOWHERE
        for reference in references(INCLUDE.sub("", without_keys)):
            value |= resolve(reference, dot, variables)
        self.read |= {one for one in value if one}
        if AS_IT_IS.search(expression):
            self.read |= {one for one in below(value, "**") if one}
        return value


def dotted(match: re.Match[str]) -> str:
    """``index $name "a" "b"`` as ``$name.a.b``."""
    return ".".join([match[1], *STRING_WORD.findall(match[2])])


def references(expression: str) -> Iterator[str]:
    """Every ``$name.path``, ``.path`` and bare dot outside of strings."""
    for match in REFERENCE.finditer(STRING.sub('""', expression)):
        yield match[0]


def resolve(reference: str, dot: Where, variables: dict[str, Where]) -> Where:
    """The values that ``$a.b`` or ``.b`` may be."""
    head, *fields = reference.split(".")
    found = variables.get(head, NOWHERE) if head else dot
    for name in fields:
        if name:
            found = below(found, name)
    return found


def below(where: Where, name: str) -> Where:
    """The values under a name; of the root context only ``.Values`` are values."""
    values = {()} if name == "Values" and None in where else set()
    return frozenset(values | {(*one, name) for one in where if one is not None})


def tree(read: set[tuple[str, ...]]) -> dict[str, Any]:
    """The paths as nested mappings, a leaf being empty."""
    root: dict[str, Any] = {}
    for path in sorted(read):
        node = root
        for name in path:
            node = node.setdefault(name, {})
    return root


def chart_keys(folder: Path) -> dict[str, Any]:
    """The tree of keys that a chart's templates read, its subcharts' included as they are."""
    reader = Reader()
    libraries = []
    for one in about(folder).get("dependencies", ()):
        beside = folder / str(one.get("repository", "")).removeprefix("file://")
        here = beside != folder and (beside / "Chart.yaml").exists()
        if here and about(beside).get("type") == "library":
            libraries.append(beside)
        else:
            reader.read.add((one.get("alias", one["name"]), "**"))
    for library in libraries:
        for path in template_files(library):
            reader.load(path.read_text(encoding="utf-8"))
    bodies = [reader.load(path.read_text(encoding="utf-8")) for path in template_files(folder)]
    for body in bodies:
        reader.run(body, ROOT)
    return tree(reader.read | {("global", "**")})


def about(folder: Path) -> Any:
    """What Chart.yaml says."""
    return yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))


def template_files(folder: Path) -> list[Path]:
    """The templates of a chart, helpers and notes among them."""
    return sorted((folder / "templates").rglob("*.*"))


def without_prose(schema: Any, *, names: bool = False) -> Any:
    """A JSON Schema with what validates only; ``names``: the keys are the user's."""
    if isinstance(schema, list):
        return [without_prose(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_prose(value, names=key in ("properties", "$defs") and not names)
        for key, value in schema.items()
        if names or key not in PROSE
    }


def main() -> None:
    """Write the profile of a chart."""
    parser = argparse.ArgumentParser(description="Derive the values that a Helm chart reads.")
    parser.add_argument("folder", type=Path, help="the chart, with Chart.yaml and templates/")
    parser.add_argument("--source", required=True, help="repository@commit")
    parser.add_argument("--licence", default="Apache-2.0")
    parser.add_argument("--version", help="where Chart.yaml has none")
    options = parser.parse_args()
    chart = about(options.folder)
    version = options.version or chart["version"]
    schema = options.folder / "values.schema.json"
    profile = {
        "chart": chart["name"],
        "version": version,
        "source": options.source,
        "licence": options.licence,
        "tool": "tools/chart_keys.py",
        "keys": chart_keys(options.folder),
    }
    if schema.exists():
        profile["schema"] = without_prose(json.loads(schema.read_text(encoding="utf-8")))
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{chart['name']}-{version}.json"
    path.write_text(json.dumps(profile, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
