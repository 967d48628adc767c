"""A service of a Compose file as a container: what it runs in, with the place of every setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from vllm_advisor.parse.compose.variables import string_at, text_at
from vllm_advisor.parse.container import (
    Container,
    EnvVar,
    Mount,
    Probe,
    Resources,
    Security,
    SharedMemory,
)
from vllm_advisor.parse.docker_units import (
    decimal_number,
    docker_bytes,
    docker_seconds,
    whole_number,
)
from vllm_advisor.parse.images import read_image
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.yaml_tree import YamlValue

GPU = "nvidia.com/gpu"  # the name under which Compose's devices are counted
_BIND = (".", "/", "~")


def container_of(service: YamlValue) -> Container:
    """The container of a service."""
    image = text_at(service.at("image"))
    return Container(
        name=string_at(service.at("container_name")) or service.key,
        location=service.location,
        image=read_image(image.text, service.at("image").location) if image else None,
        env=tuple(_environment(service.at("environment"))),
        env_from=tuple(_env_files(service.at("env_file"))),
        resources=_resources(service),
        shared_memory=_shared_memory(service),
        mounts=tuple(_mounts(service)),
        healthcheck=_healthcheck(service.at("healthcheck")),
        ports=tuple(_ports(service.at("ports"))),
        security=_security(service),
    )


def gpus_of(service: YamlValue) -> tuple[Placed[int] | None, tuple[Placed[str], ...]]:
    """How many GPUs a service gets, where that is a number, and which."""
    requests = [*service.at("deploy", "resources", "reservations", "devices").items()]
    requests += [*service.at("gpus").items()]
    for request in requests:
        ids = tuple(
            Placed(string_at(one), one.location) for one in request.at("device_ids").items()
        )
        if ids:
            return Placed(len(ids), request.at("device_ids").location), ids
        if (count := whole_at(request.at("count"))) is not None:
            return count, ()
    return None, ()


def seconds_at(view: YamlValue) -> Placed[int] | None:
    """A time in whole seconds."""
    seconds = docker_seconds(string_at(view))
    return None if seconds is None else Placed(seconds, view.location)


def whole_at(view: YamlValue) -> Placed[int] | None:
    """A whole number."""
    number = whole_number(string_at(view))
    return None if number is None else Placed(number, view.location)


def _environment(view: YamlValue) -> Iterator[EnvVar]:
    """Variables as a mapping or as a list of NAME=value; without a value they are the host's."""
    for one in (*view.entries(), *view.items()):
        text = text_at(one)
        name, equals, value = one.key, "=", text
        if isinstance(view.value, list):
            if text is None:
                continue
            name, equals, _ = text.text.partition("=")
            value = text.part(len(name) + 1, len(text.text)) if equals else None
        if value is None:
            yield EnvVar(name=name, value=None, source="host", location=one.location)
            continue
        unresolved = bool(text and text.unresolved)
        yield EnvVar(
            name=name,
            value=None if unresolved else value.text,
            source="unresolved" if unresolved else "value",
            reference=value.text if unresolved else "",
            location=one.location,
        )


def _env_files(view: YamlValue) -> Iterator[Placed[str]]:
    for one in (view, *view.items()):
        if path := string_at(one) or string_at(one.at("path")):
            yield Placed(path, one.location)


def _resources(service: YamlValue) -> Resources:
    deploy = service.at("deploy", "resources")
    gpus, _ = gpus_of(service)
    limits = {GPU: Placed(Fraction(gpus.value), gpus.location)} if gpus else {}
    memory = deploy.at("limits", "memory") or service.at("mem_limit")
    return Resources(
        location=deploy.location,
        requests=_amounts(
            deploy.at("reservations", "cpus"),
            deploy.at("reservations", "memory") or service.at("mem_reservation"),
        ),
        limits={
            **limits,
            **_amounts(deploy.at("limits", "cpus") or service.at("cpus"), memory),
        },
    )


def _amounts(cpus: YamlValue, memory: YamlValue) -> Mapping[str, Placed[Fraction]]:
    found = {}
    if (cores := decimal_number(string_at(cpus))) is not None:
        found["cpu"] = Placed(cores, cpus.location)
    if (size := docker_bytes(string_at(memory))) is not None:
        found["memory"] = Placed(Fraction(size), memory.location)
    return found


def _shared_memory(service: YamlValue) -> SharedMemory | None:
    ipc, size = service.at("ipc"), service.at("shm_size")
    if string_at(ipc) == "host":
        return SharedMemory(kind="host", size=None, location=ipc.location)
    if size:
        return SharedMemory(
            kind="shm_size", size=docker_bytes(string_at(size)), location=size.location
        )
    return None


def _mounts(service: YamlValue) -> Iterator[Mount]:
    for one in service.at("volumes").items():
        if one.mapping():
            kind, source = string_at(one.at("type")) or "volume", string_at(one.at("source"))
            path, options = string_at(one.at("target")), ""
            read_only = one.at("read_only").value is True
        else:
            source, _, rest = string_at(one).partition(":")
            path, _, options = rest.partition(":")
            if not path:
                source, path = "", source
            kind = "bind" if source.startswith(_BIND) else "volume"
            read_only = "ro" in options.split(",")
        yield Mount(
            path=path,
            volume="" if kind == "bind" else source,
            kind=kind,
            source=source,
            read_only=read_only,
            location=one.location,
            volume_location=one.location,
        )


def _healthcheck(view: YamlValue) -> Probe | None:
    if not view.mapping() or view.at("disable").value is True:
        return None
    test = view.at("test")
    words = [string_at(word) for word in test.items()] or [string_at(test)]
    return Probe(
        kind="healthcheck",
        handler=" ".join(word for word in words if word not in ("CMD", "CMD-SHELL")),
        initial_delay=seconds_at(view.at("start_period")),
        period=seconds_at(view.at("interval")),
        timeout=seconds_at(view.at("timeout")),
        failures=whole_at(view.at("retries")),
        location=view.location,
    )


def _ports(view: YamlValue) -> Iterator[Placed[int]]:
    for one in view.items():
        target = string_at(one.at("target")) or string_at(one).rpartition(":")[2]
        if (number := whole_number(target.partition("/")[0])) is not None:
            yield Placed(number, one.location)


def _security(service: YamlValue) -> Security:
    user = service.at("user")
    name, _, group = string_at(user).partition(":")
    user_id, group_id = whole_number(name), whole_number(group)
    return Security(
        run_as_user=None if user_id is None else Placed(user_id, user.location),
        run_as_group=None if group_id is None else Placed(group_id, user.location),
        read_only_root=service.at("read_only").placed_boolean(),
        privileged=service.at("privileged").placed_boolean(),
        capabilities_added=_names(service.at("cap_add")),
        capabilities_dropped=_names(service.at("cap_drop")),
        location=service.location,
    )


def _names(view: YamlValue) -> tuple[Placed[str], ...]:
    return tuple(name for one in view.items() if (name := one.placed_string()) is not None)
