"""The options of ``docker run`` (podman's and nerdctl's as well) as a container."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath

from vllm_advisor.parse.container import (
    Container,
    EnvVar,
    Mount,
    Resources,
    Security,
    SharedMemory,
)
from vllm_advisor.parse.docker_units import decimal_number, docker_bytes, whole_number
from vllm_advisor.parse.images import Image
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.shell import Token
from vllm_advisor.types.decision import Location

GPU = "nvidia.com/gpu"
_PROGRAMS = frozenset(("docker", "podman", "nerdctl"))
_LONG = {
    "-e": "--env", "-v": "--volume", "-m": "--memory", "-p": "--publish", "-u": "--user",
}  # fmt: skip
_TAKING = frozenset((
    "--cap-add", "--cap-drop", "--cpus", "--device", "--entrypoint", "--env", "--env-file",
    "--gpus", "--hostname", "--ipc", "--memory", "--mount", "--name", "--net", "--network",
    "--publish", "--restart", "--runtime", "--security-opt", "--shm-size", "--ulimit", "--user",
    "--volume", "--workdir",
))  # fmt: skip
_DEVICES = re.compile(r"[\"']?device=([^\"']+)[\"']?")

Options = Mapping[str, Sequence[Token]]


def docker_options(before: Sequence[Token]) -> Options | None:
    """The options of the ``docker run`` in front of an image, by their long names; else None."""
    start = next(
        (
            index
            for index, word in enumerate(before)
            if PurePosixPath(word.text).name in _PROGRAMS
            and any(w.text == "run" for w in before[index + 1 : index + 3])
        ),
        None,
    )
    if start is None:
        return None
    options: dict[str, list[Token]] = {}
    words = iter(before[start + 1 :])
    for word in words:
        name, equals, value = word.text.partition("=")
        name = _LONG.get(name, name)
        if equals and name.startswith("--"):
            options.setdefault(name, []).append(word._replace(text=value))
        elif name in _TAKING:
            options.setdefault(name, []).append(next(words, word))
        elif name.startswith("--"):
            options.setdefault(name, []).append(word)
    return options


def docker_container(options: Options, image: Image | None, where: Location) -> Container:
    """The container that the options make."""
    return Container(
        name=_last(options, "--name"),
        location=where,
        image=image,
        env=tuple(_environment(options)),
        env_from=tuple(Placed(w.text, w.location) for w in options.get("--env-file", ())),
        resources=_resources(options, where),
        shared_memory=_shared_memory(options),
        mounts=tuple(_mounts(options)),
        security=_security(options, where),
    )


def docker_gpus(options: Options) -> tuple[Placed[int] | None, tuple[Placed[str], ...]]:
    """How many GPUs the container gets, where that is a number, and which."""
    for word in options.get("--gpus", ()):
        if (count := whole_number(word.text)) is not None:
            return Placed(count, word.location), ()
        if match := _DEVICES.fullmatch(word.text):
            ids = tuple(Placed(part.strip(), word.location) for part in match[1].split(","))
            return Placed(len(ids), word.location), ids
    return None, ()


def _last(options: Options, name: str) -> str:
    given = options.get(name)
    return given[-1].text if given else ""


def _environment(options: Options) -> Iterator[EnvVar]:
    for word in options.get("--env", ()):
        name, equals, value = word.text.partition("=")
        known = bool(equals) and not word.unresolved
        yield EnvVar(
            name=name,
            value=value if known else None,
            source="value" if known else "unresolved" if equals else "host",
            reference="" if known else value,
            location=word.location,
        )


def _resources(options: Options, where: Location) -> Resources:
    limits: dict[str, Placed[Fraction]] = {}
    gpus, _ = docker_gpus(options)
    if gpus is not None:
        limits[GPU] = Placed(Fraction(gpus.value), gpus.location)
    for word in options.get("--memory", ()):
        if (size := docker_bytes(word.text)) is not None:
            limits["memory"] = Placed(Fraction(size), word.location)
    for word in options.get("--cpus", ()):
        if (cores := decimal_number(word.text)) is not None:
            limits["cpu"] = Placed(cores, word.location)
    return Resources(location=where, limits=limits)


def _shared_memory(options: Options) -> SharedMemory | None:
    for word in options.get("--ipc", ()):
        if word.text == "host":
            return SharedMemory(kind="host", size=None, location=word.location)
    for word in options.get("--shm-size", ()):
        size = docker_bytes(word.text)
        return SharedMemory(kind="shm_size", size=size, location=word.location)
    return None


def _mounts(options: Options) -> Iterator[Mount]:
    for word in options.get("--volume", ()):
        source, _, rest = word.text.partition(":")
        path, _, flags = rest.partition(":")
        yield _mount(word, source, path or source, "ro" in flags.split(","))
    for word in options.get("--mount", ()):
        parts = dict(part.partition("=")[::2] for part in word.text.split(","))
        source = parts.get("source", parts.get("src", ""))
        path = parts.get("target", parts.get("dst", parts.get("destination", "")))
        yield _mount(word, source, path, "readonly" in parts)


def _mount(word: Token, source: str, path: str, read_only: bool) -> Mount:
    bind = source.startswith((".", "/", "~", "$"))
    return Mount(
        path=path,
        volume="" if bind else source,
        kind="bind" if bind else "volume",
        source=source,
        read_only=read_only,
        location=word.location,
        volume_location=word.location,
    )


def _security(options: Options, where: Location) -> Security:
    def placed(name: str) -> tuple[Placed[str], ...]:
        return tuple(Placed(word.text, word.location) for word in options.get(name, ()))

    users = placed("--user")
    user, _, group = users[-1].value.partition(":") if users else ("", "", "")
    user_id, group_id = whole_number(user), whole_number(group)
    place = users[-1].location if users else where
    privileged = options.get("--privileged")
    return Security(
        run_as_user=None if user_id is None else Placed(user_id, place),
        run_as_group=None if group_id is None else Placed(group_id, place),
        privileged=Placed(True, privileged[0].location) if privileged else None,  # noqa: FBT003
        capabilities_added=placed("--cap-add"),
        capabilities_dropped=placed("--cap-drop"),
        location=where,
    )
