"""Values of production-stack's chart: one server for each ``modelSpec``, and all around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vllm_advisor.parse.container import Container, EnvVar, Mount, Resources, SharedMemory
from vllm_advisor.parse.deployed import (
    Deployed,
    DeployedObject,
    Pod,
    Selection,
    ServedInstance,
    repeated_keys,
)
from vllm_advisor.parse.helm.stack_command import stack_command
from vllm_advisor.parse.images import EngineOf, Image, read_image
from vllm_advisor.parse.kubernetes.commands import environment
from vllm_advisor.parse.kubernetes.containers import (
    probe_of,
    quantity_at,
    security_of,
    variable_of,
)
from vllm_advisor.parse.kubernetes.hardware import labelled
from vllm_advisor.parse.kubernetes.instances import read_kubernetes
from vllm_advisor.parse.kubernetes.objects import objects_in_list
from vllm_advisor.parse.kubernetes.pods import match_expressions, rollout_of
from vllm_advisor.parse.kubernetes.volumes import bytes_at, mounts_of, shared_memory_of
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.remarks import Note
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue

KIND = "helm-production-stack"
ENGINES, MODELS = "servingEngineSpec", "modelSpec"
_PARTS = (ENGINES, "routerSpec", "cacheserverSpec", "loraController")
_DATA = "/data"  # where the chart mounts its claim
_SHM = 20 << 30  # of the chart, where shmSize is not given
_NOT_READ = ("lmcacheConfig", "raySpec", "chatTemplate", "enableLoRA", "enableTool")


def read_production_stack(
    documents: Sequence[YamlDocument], file: str, engine_of: EngineOf
) -> Deployed:
    """What the chart makes of values; a ``modelSpec`` alone, or its items, will do as well.

    Values of another chart are read as Kubernetes objects are: by the pod specs in them.
    """
    if not any(_of_this_chart(document.root) for document in documents):
        return read_kubernetes(documents, file, engine_of)
    instances: list[ServedInstance] = []
    objects: list[DeployedObject] = []
    notes = [*repeated_keys(documents)]
    for document in documents:
        root = document.root
        objects += [
            DeployedObject(kind=part, name=part, view=root.at(part))
            for part in _PARTS
            if root.at(part)
        ]
        objects += objects_in_list(root.at("extraObjects"))
        for spec, engines in _specs(root):
            one = DeployedObject(kind=MODELS, name=spec.at("name").string(), view=spec)
            objects.append(one)
            instances.append(_instance(one, engines, tuple(objects), engine_of))
            notes += _unread(spec)
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(instances),
        objects=tuple(objects),
        notes=tuple(notes),
    )


def _of_this_chart(root: YamlValue) -> bool:
    parts = (*_PARTS, MODELS, "extraObjects")
    return isinstance(root.value, list) or any(root.at(part) for part in parts)


def _specs(root: YamlValue) -> Iterator[tuple[YamlValue, YamlValue]]:
    """Every item of ``modelSpec`` with the ``servingEngineSpec`` around it."""
    engines = root.at(ENGINES)
    if engines.value is None:
        engines = root
    found = root if isinstance(root.value, list) else engines.at(MODELS)
    for spec in found.items():
        if spec.mapping():
            yield spec, engines


def _unread(spec: YamlValue) -> Iterator[Note]:
    for key in _NOT_READ:
        setting = spec.at(key)
        if setting.value and setting.at("enabled").value is not False:
            yield Note(
                f"what the chart adds to the command for {key} is not read", setting.location
            )


def _instance(
    one: DeployedObject,
    engines: YamlValue,
    objects: tuple[DeployedObject, ...],
    engine_of: EngineOf,
) -> ServedInstance:
    spec = one.view
    container = _container(one, engines)
    image = container.image
    command = stack_command(
        spec, engines, env=environment(container, {}), image=image, engine_of=engine_of
    )
    selections = tuple(_selections(spec))
    version = image.version if image else ""
    return ServedInstance(
        command=command,
        kind=KIND,
        name=one.name or MODELS,
        location=spec.location,
        container=container,
        pod=_pod(one, engines, selections, objects),
        vllm_version=Placed(version, image.location) if image and version else None,
        gpu_names=labelled(selections),
        gpus=container.resources.gpus,
    )


def _container(one: DeployedObject, engines: YamlValue) -> Container:
    spec = one.view
    mounts = (
        *_claim(spec),
        *mounts_of(spec.at("extraVolumeMounts"), spec.at("extraVolumes"), one, ()),
    )
    return Container(
        name="vllm",
        location=spec.location,
        image=_image(spec),
        env=(
            *_secrets(spec, engines),
            *(variable_of(e) for e in engines.at("env").items() if e.mapping()),
            *(variable_of(e) for e in spec.at("env").items() if e.mapping()),
        ),
        resources=_resources(spec),
        shared_memory=_shared_memory(spec) or shared_memory_of(mounts),
        mounts=mounts,
        startup=probe_of(engines.at("startupProbe"), "startup"),
        readiness=probe_of(engines.at("readinessProbe"), "readiness"),
        liveness=probe_of(engines.at("livenessProbe"), "liveness"),
        security=security_of(engines.at("containerSecurityContext"), engines.at("securityContext")),
    )


def _image(spec: YamlValue) -> Image | None:
    repository, tag = spec.at("repository").string(), spec.at("tag").string()
    if not repository:
        return None
    place = spec.at("tag") if tag else spec.at("repository")
    return read_image(f"{repository}:{tag}" if tag else repository, place.location)


def _resources(spec: YamlValue) -> Resources:
    gpu = spec.at("requestGPUType").string() or "nvidia.com/gpu"
    named = {"requestCPU": "cpu", "requestMemory": "memory", "requestGPU": gpu}
    limits = {"limitCPU": "cpu", "limitMemory": "memory", "requestGPU": gpu}
    return Resources(
        location=spec.location,
        requests={
            name: quantity for key, name in named.items() if (quantity := quantity_at(spec.at(key)))
        },
        limits={
            name: quantity
            for key, name in limits.items()
            if (quantity := quantity_at(spec.at(key)))
        },
    )


def _shared_memory(spec: YamlValue) -> SharedMemory | None:
    """The chart mounts it for ``tensorParallelSize`` and for nothing else."""
    parallel, size = spec.at("vllmConfig", "tensorParallelSize"), spec.at("shmSize")
    if not parallel:
        return None
    place = size.location if size else parallel.location
    return SharedMemory(kind="emptyDir", size=bytes_at(size) or _SHM, location=place)


def _claim(spec: YamlValue) -> Iterator[Mount]:
    storage = spec.at("pvcStorage")
    if storage:
        modes = tuple(mode.string() for mode in spec.at("pvcAccessMode").items())
        yield Mount(
            path=_DATA,
            volume="storage",
            kind="persistentVolumeClaim",
            source=spec.at("pvcExistingClaimName").string(),
            size=bytes_at(storage),
            access_modes=modes or ("ReadWriteOnce",),
            location=storage.location,
            volume_location=storage.location,
        )


def _secrets(spec: YamlValue, engines: YamlValue) -> Iterator[EnvVar]:
    """Tokens: by reference to a Secret, or written out."""
    if spec.at("pvcStorage"):
        place = spec.at("pvcStorage").location
        yield EnvVar(name="HF_HOME", value=_DATA, source="value", location=place)
    for name, setting in (
        ("HF_TOKEN", spec.at("hf_token")),
        ("VLLM_API_KEY", engines.at("vllmApiKey")),
    ):
        if setting.mapping():
            keys = (setting.at("secretName").string(), setting.at("secretKey").string())
            yield EnvVar(
                name=name,
                value=None,
                source="secret",
                reference="/".join(keys),
                location=setting.location,
            )
        elif setting.string():
            yield EnvVar(
                name=name, value=setting.string(), source="value", location=setting.location
            )


def _selections(spec: YamlValue) -> Iterator[Selection]:
    for term in spec.at("nodeSelectorTerms").items():
        yield from match_expressions(term)


def _pod(
    one: DeployedObject,
    engines: YamlValue,
    selections: tuple[Selection, ...],
    objects: tuple[DeployedObject, ...],
) -> Pod:
    spec = one.view
    deployment = f"-{one.name}-deployment-vllm"
    return Pod(
        owner=one,
        location=spec.location,
        labels={e.key: e.string() for e in spec.at("podLabels").entries()},
        replicas=spec.at("replicaCount").placed_integer(),
        rollout=rollout_of(engines),
        runtime_class=engines.at("runtimeClassName").placed_string(),
        selections=selections,
        autoscalers=tuple(
            each
            for each in objects
            if each.view.at("spec", "scaleTargetRef", "name").string().endswith(deployment)
        ),
    )
