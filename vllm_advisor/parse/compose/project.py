"""A Compose file: its services, and the servers among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vllm_advisor.parse.compose.services import container_of, gpus_of, seconds_at, whole_at
from vllm_advisor.parse.compose.variables import string_at, text_at
from vllm_advisor.parse.container import Container
from vllm_advisor.parse.container_command import Words, server_of
from vllm_advisor.parse.deployed import (
    Deployed,
    DeployedObject,
    Pod,
    ServedInstance,
    repeated_keys,
)
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.remarks import Note
from vllm_advisor.parse.shell import Token
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue

KIND = "compose"
SERVICE = "ComposeService"
_OWN_KEYS = frozenset(("image", "command", "entrypoint", "healthcheck", "environment", "deploy"))


def read_compose(documents: Sequence[YamlDocument], file: str, engine_of: EngineOf) -> Deployed:
    """What a Compose file starts; services without ``services`` around them, or one, do as well."""
    objects: list[DeployedObject] = []
    instances: list[ServedInstance] = []
    notes = [*repeated_keys(documents)]
    for document in documents:
        for service in _services(document.root):
            one = DeployedObject(kind=SERVICE, name=service.key or "service", view=service)
            objects.append(one)
            notes += _not_followed(service)
            found = _instance(one, engine_of)
            if found is not None:
                instances.append(found)
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(instances),
        objects=tuple(objects),
        notes=tuple(notes),
    )


def _services(root: YamlValue) -> Iterator[YamlValue]:
    if root.at("services").mapping():
        yield from (one for one in root.at("services").entries() if one.mapping())
    elif _OWN_KEYS & root.mapping().keys():
        yield root
    else:
        yield from (one for one in root.entries() if _OWN_KEYS & one.mapping().keys())


def _not_followed(service: YamlValue) -> Iterator[Note]:
    for key, what in (("env_file", "the variables in"), ("extends", "the service of")):
        setting = service.at(key)
        if setting:
            yield Note(f"{what} {key} are not read: {setting.value}", setting.location)


def _instance(one: DeployedObject, engine_of: EngineOf) -> ServedInstance | None:
    service = one.view
    container = container_of(service)
    image = container.image
    command = server_of(
        _words(service.at("entrypoint")),
        _words(service.at("command")),
        env=_env(container),
        image=image,
        engine_of=engine_of,
        assume=image is None,
        where=service.location,
    )
    if command is None:
        return None
    gpus, devices = gpus_of(service)
    version = image.version if image else ""
    if not command.location.file:
        command = replace(command, location=service.location)
    return ServedInstance(
        command=command,
        kind=KIND,
        name=one.name,
        location=service.location,
        container=container,
        pod=_pod(one),
        vllm_version=Placed(version, image.location) if image and version else None,
        gpus=gpus,
        devices=devices or _visible(container),
    )


def _words(view: YamlValue) -> Words:
    """A command as a list of words, or as a text that Compose splits."""
    if isinstance(view.value, list):
        return Words(tuple(text for one in view.items() if (text := text_at(one)) is not None))
    text = text_at(view)
    return Words(tuple(text.words()) if text else ())


def _env(container: Container) -> dict[str, Token]:
    env = {}
    for one in container.env:
        if one.value is None:
            env[one.name] = Token(f"${{{one.name}}}", one.location, (one.name,))
        else:
            env[one.name] = Token(one.value, one.location)
    return env


def _visible(container: Container) -> tuple[Placed[str], ...]:
    """The GPUs of the host that variables leave visible."""
    for name in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        variable = container.variable(name)
        if variable and variable.value and variable.value not in ("all", "none", "void"):
            return tuple(
                Placed(part.strip(), variable.location) for part in variable.value.split(",")
            )
    return ()


def _pod(one: DeployedObject) -> Pod:
    service = one.view
    network, ipc = service.at("network_mode"), service.at("ipc")
    return Pod(
        owner=one,
        location=service.location,
        labels={entry.key: string_at(entry) for entry in service.at("labels").entries()},
        replicas=whole_at(service.at("deploy", "replicas")) or whole_at(service.at("scale")),
        host_network=Placed(string_at(network) == "host", network.location) if network else None,
        host_ipc=Placed(string_at(ipc) == "host", ipc.location) if ipc else None,
        termination_grace=seconds_at(service.at("stop_grace_period")),
        runtime_class=service.at("runtime").placed_string(),
    )
