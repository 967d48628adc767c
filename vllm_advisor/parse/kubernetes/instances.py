"""The servers of Kubernetes objects that belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vllm_advisor.parse.container import Container
from vllm_advisor.parse.deployed import (
    Deployed,
    DeployedObject,
    Pod,
    ServedInstance,
    repeated_keys,
)
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.kubernetes.commands import command_of
from vllm_advisor.parse.kubernetes.containers import container_of
from vllm_advisor.parse.kubernetes.hardware import hardware_of
from vllm_advisor.parse.kubernetes.kserve import model_server_command, preset_command
from vllm_advisor.parse.kubernetes.objects import (
    LLM_SERVICE,
    PodSource,
    objects_in,
    pods_in,
)
from vllm_advisor.parse.kubernetes.pods import pod_of
from vllm_advisor.parse.parsed_command import ParsedCommand
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue

KIND = "kubernetes"
_PRESET_CONTAINER = "main"


def read_kubernetes(documents: Sequence[YamlDocument], file: str, engine_of: EngineOf) -> Deployed:
    """What manifests deploy that are applied together.

    Args:
        documents: the documents of one file, or of all files of a folder.
        file: the file's or the folder's name.
        engine_of: facts of the version that an image states.
    """
    objects = tuple(one for document in documents for one in objects_in(document))
    instances = [one for each in objects for one in _instances(each, objects, engine_of)]
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(instances),
        objects=objects,
        notes=tuple(repeated_keys(documents)),
    )


def _instances(
    one: DeployedObject, objects: tuple[DeployedObject, ...], engine_of: EngineOf
) -> Iterator[ServedInstance]:
    model = one.view.at("spec", "predictor", "model")
    if one.kind == "InferenceService" and model.mapping():
        predictor = one.view.at("spec", "predictor")
        source = PodSource(owner=one, spec=predictor, template=predictor, containers=(model,))
        container = container_of(model, source, objects)
        command = model_server_command(model, container, engine_of)
        yield _instance(source, model, container, command, objects)
        return
    for pod in pods_in(one):
        for view in pod.containers:
            container = container_of(view, pod, objects)
            found = _command(view, container, pod, engine_of)
            if found is not None:
                yield _instance(pod, view, container, found, objects)


def _command(
    view: YamlValue, container: Container, pod: PodSource, engine_of: EngineOf
) -> ParsedCommand | None:
    preset = pod.owner.kind == LLM_SERVICE and container.name in (_PRESET_CONTAINER, "")
    if preset and not view.at("command"):
        return preset_command(view, container, pod, engine_of)
    return command_of(view, container, engine_of, given=_given(pod), assume=pod.fragment)


def _given(pod: PodSource) -> dict[str, str]:
    """What a LeaderWorkerSet tells its pods; the leader's address is known in the cluster only."""
    size = pod.owner.view.at("spec", "leaderWorkerTemplate", "size").placed_integer()
    if pod.owner.kind != "LeaderWorkerSet" or size is None:
        return {}
    given = {"LWS_GROUP_SIZE": str(size.value)}
    if pod.role == "leader" or not pod.owner.view.at(
        "spec", "leaderWorkerTemplate", "leaderTemplate"
    ):
        given["LWS_WORKER_INDEX"] = "0"
    elif size.value == 2:
        given["LWS_WORKER_INDEX"] = "1"
    return given


def _instance(
    source: PodSource,
    view: YamlValue,
    container: Container,
    command: ParsedCommand,
    objects: tuple[DeployedObject, ...],
) -> ServedInstance:
    pod = pod_of(source, view, objects)
    hardware = hardware_of(source, container, pod.selections, objects)
    version = container.image.version if container.image else ""
    if not command.location.file:
        command = replace(command, location=container.location)
    return ServedInstance(
        command=command,
        kind=KIND,
        name=_name(pod, container, several=len(source.containers) > 1),
        location=container.location,
        container=container,
        pod=pod,
        vllm_version=Placed(version, container.image.location)
        if container.image and version
        else None,
        gpu_names=hardware.names,
        gpus=hardware.gpus,
        nodes=pod.group_size,
    )


def _name(pod: Pod, container: Container, *, several: bool) -> str:
    parts = [pod.owner.identity or container.name or "fragment"]
    if pod.group_role:
        parts.append(pod.group_role)
    if several:
        parts.append(container.name)
    return "/".join(part for part in parts if part)
