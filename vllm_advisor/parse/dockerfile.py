"""Dockerfiles: the server that the image they build starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from packaging.requirements import Requirement

from vllm_advisor.parse.container import Container, EnvVar, Resources, Security
from vllm_advisor.parse.container_command import Words, server_of
from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.images import EngineOf, Image, read_image
from vllm_advisor.parse.installed import installed
from vllm_advisor.parse.placed import Placed, PlacedText, Span
from vllm_advisor.parse.shell import Token, read_script

KIND = "dockerfile"
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+")
_SHELL = ("/bin/sh", "-c")


def read_dockerfile(text: str, file: str, engine_of: EngineOf) -> Deployed:
    """The server of the last stage, if its command starts one."""
    image: Image | None = None
    command, args = Words(()), Words(())
    env: dict[str, Token] = {}
    packages: list[Placed[Requirement]] = []
    last = PlacedText(text="", file=file, spans=(Span(0, 1, 1),))
    for name, value in _instructions(text, file):
        if name == "FROM":
            words = [w.text for w in value.words() if not w.text.startswith("--")]
            image = read_image(words[0], value.location) if words else None
            command, args, env, packages = Words(()), Words(()), {}, []
        elif name == "ENTRYPOINT":
            command, args, last = _words(value), Words(()), value
        elif name == "CMD":
            args, last = _words(value), value
        elif name == "RUN":
            packages += installed(read_script(value.text, file, locate=value.locate).commands)
        elif name == "ENV":
            env.update(_environment(value))
    if image is None and not command.texts and not args.texts:
        return Deployed(kind=KIND, file=file, instances=())
    found = server_of(
        command,
        args,
        env=env,
        image=image,
        engine_of=engine_of,
        assume=False,
        where=image.location if image else last.location,
    )
    instances = (
        ()
        if found is None
        else (
            ServedInstance(
                command=found,
                kind=KIND,
                name="image",
                location=last.location,
                container=_container(image, env, last),
                vllm_version=Placed(image.version, image.location)
                if image and image.version
                else None,
            ),
        )
    )
    return Deployed(kind=KIND, file=file, instances=instances, packages=tuple(packages))


def _container(image: Image | None, env: dict[str, Token], last: PlacedText) -> Container:
    return Container(
        name="image",
        location=last.location,
        image=image,
        env=tuple(
            EnvVar(name=name, value=token.text, source="value", location=token.location)
            for name, token in env.items()
        ),
        resources=Resources(location=last.location),
        security=Security(location=last.location),
    )


def _instructions(text: str, file: str) -> Iterator[tuple[str, PlacedText]]:
    joined, spans = "", list[Span]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        spans.append(Span(len(joined), number, 1))
        continued = line.rstrip().endswith("\\")
        joined += f"{line.rstrip()[:-1]} " if continued else line
        if continued:
            continue
        yield from _instruction(joined, file, spans)
        joined, spans = "", []
    yield from _instruction(joined, file, spans)


def _instruction(text: str, file: str, spans: list[Span]) -> Iterator[tuple[str, PlacedText]]:
    match = _INSTRUCTION.match(text)
    if match is not None:
        whole = PlacedText(text, file, tuple(spans))
        yield match[1].upper(), whole.part(match.end(), len(text))


def _words(value: PlacedText) -> Words:
    """A command as a JSON list of words, or as a text for the shell."""
    try:
        words = json.loads(value.text)
    except ValueError:
        words = None
    if not isinstance(words, list):
        shell = tuple(PlacedText.at_place(word, value.location) for word in _SHELL)
        return Words((*shell, value))
    texts, at = [], 0
    for word in words:
        at = max(at, value.text.find('"', at))
        texts.append(PlacedText.at_place(str(word), value.locate(at + 1)))
        at += len(json.dumps(str(word), ensure_ascii=False)) + 1
    return Words(tuple(texts))


def _environment(value: PlacedText) -> Iterator[tuple[str, Token]]:
    words = value.words()
    if len(words) > 1 and "=" not in words[0].text:  # ENV NAME value
        rest = value.part(len(words[0].text) + 1, len(value.text))
        yield words[0].text, rest.token()
        return
    for word in words:
        name, equals, _ = word.text.partition("=")
        if equals:
            yield name, word.part(len(name) + 1, len(word.text)).token()
