"""What a container mounts, and what of it is shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vllm_advisor.parse.container import Mount, SharedMemory
from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.kubernetes.objects import PodSource
from vllm_advisor.parse.kubernetes_semantics.bundle import namespace
from vllm_advisor.parse.kubernetes_semantics.resources import quantity
from vllm_advisor.parse.yaml_tree import YamlValue

SHM = "/dev/shm"  # noqa: S108 - where shared memory is, not a file of ours
_TEMPLATES = (("spec",), ("spec", "leaderWorkerTemplate"))


def mounts_of(
    mounts: YamlValue,
    volumes: YamlValue,
    owner: DeployedObject,
    objects: tuple[DeployedObject, ...],
) -> tuple[Mount, ...]:
    """The mounts of a container.

    Args:
        mounts: its ``volumeMounts``.
        volumes: the pod's ``volumes``.
        owner: the object, whose ``volumeClaimTemplates`` are volumes as well.
        objects: those of the source, among which claims are looked up.
    """
    named = {v.at("name").string(): v for v in volumes.items()}
    templates = {
        claim.at("metadata", "name").string(): claim
        for holder in _TEMPLATES
        for claim in owner.view.at(*holder, "volumeClaimTemplates").items()
    }
    return tuple(
        _mount(mount, named.get(name), templates.get(name), owner, objects)
        for mount in mounts.items()
        if (name := mount.at("name").string()) or mount.at("mountPath")
    )


def shared_memory_of(mounts: tuple[Mount, ...]) -> SharedMemory | None:
    """What is mounted at /dev/shm."""
    for mount in mounts:
        if mount.path.rstrip("/") == SHM:
            kind = "emptyDir" if mount.kind == "emptyDir" else "other"
            return SharedMemory(kind=kind, size=mount.size, location=mount.volume_location)
    return None


def pods_shared_memory(pod: PodSource) -> SharedMemory | None:
    """The host's memory, or a volume in memory that a fragment shows without its mount."""
    host = pod.spec.at("hostIPC")
    if host.value is True:
        return SharedMemory(kind="host", size=None, location=host.location)
    for volume in pod.spec.at("volumes").items() if pod.fragment else ():
        if volume.at("emptyDir", "medium").string() == "Memory":
            size = bytes_at(volume.at("emptyDir", "sizeLimit"))
            return SharedMemory(kind="emptyDir", size=size, location=volume.location)
    return None


def _mount(
    mount: YamlValue,
    volume: YamlValue | None,
    template: YamlValue | None,
    owner: DeployedObject,
    objects: tuple[DeployedObject, ...],
) -> Mount:
    kind = source = medium = ""
    size: int | None = None
    modes: tuple[str, ...] = ()
    place = volume or template or mount
    if template is not None:
        kind, source = "volumeClaimTemplate", template.at("metadata", "name").string()
        size, modes = _claim(template.at("spec"))
    elif volume is not None:
        kind = next((e.key for e in volume.entries() if e.key != "name"), "emptyDir")
        inner = volume.at(kind)
        source = next(iter(_names(inner)), "")
        if kind == "emptyDir":
            medium, size = inner.at("medium").string(), bytes_at(inner.at("sizeLimit"))
        elif kind == "ephemeral":
            size, modes = _claim(inner.at("volumeClaimTemplate", "spec"))
        elif kind == "persistentVolumeClaim":
            claim = _find(objects, "PersistentVolumeClaim", source, namespace(owner.data))
            size, modes = _claim(claim.view.at("spec")) if claim else (None, ())
    return Mount(
        path=mount.at("mountPath").string(),
        volume=mount.at("name").string(),
        kind=kind,
        source=source,
        sub_path=mount.at("subPath").string(),
        read_only=mount.at("readOnly").value is True,
        medium=medium,
        size=size,
        access_modes=modes,
        location=mount.location,
        volume_location=place.location,
    )


def _names(inner: YamlValue) -> Iterator[str]:
    for key in ("claimName", "secretName", "name", "path", "server", "driver", "reference"):
        if name := inner.at(key).string():
            yield name


def _claim(spec: YamlValue) -> tuple[int | None, tuple[str, ...]]:
    modes = tuple(mode.string() for mode in spec.at("accessModes").items())
    return bytes_at(spec.at("resources", "requests", "storage")), modes


def _find(
    objects: tuple[DeployedObject, ...], kind: str, name: str, where: str
) -> DeployedObject | None:
    return next(
        (
            one
            for one in objects
            if one.kind == kind and one.name == name and namespace(one.data) == where
        ),
        None,
    )


def bytes_at(view: YamlValue) -> int | None:
    """A quantity in bytes; None where none is written, or none that Kubernetes reads."""
    value = view.value
    read = None if isinstance(value, Mapping | list) else quantity(value)
    return None if read is None else int(read)
