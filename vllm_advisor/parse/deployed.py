"""What a source deploys: servers, the pods they run in, and everything else that is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement

from vllm_advisor.parse.container import Container
from vllm_advisor.parse.parsed_command import ParsedCommand
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.remarks import Note
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue
from vllm_advisor.types.decision import Location

_KEY = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedObject:
    """A Kubernetes object, a service of a Compose file, or a part of Helm values.

    ``kind`` is the object's own; ``ComposeService`` for a service, ``modelSpec``, ``routerSpec``
    and ``cacheserverSpec`` for parts of production-stack's values, empty for a fragment.
    """

    kind: str
    name: str
    namespace: str = ""
    view: YamlValue

    @property
    def data(self) -> Mapping[str, Any]:
        """The object as plain data."""
        return self.view.mapping()

    @property
    def location(self) -> Location:
        """Where it begins."""
        return self.view.location

    def where(self, *path: str | int) -> Location:
        """Where a value of it is written, or the nearest parent that is."""
        return self.view.at(*path).location

    def where_path(self, path: str) -> Location:
        """Where ``spec.ports[0].name`` is written; as ``kubernetes_semantics`` writes paths."""
        keys = (key for part in _KEY.findall(path) for key in part if key)
        return self.where(*(int(key) if key.isdecimal() else key for key in keys))

    @property
    def identity(self) -> str:
        """``Kind/namespace/name``, the namespace being left out where it is not given."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How pods are replaced. Numbers are as written: ``1``, ``25%``; None where not written."""

    strategy: str
    max_surge: Placed[str] | None = None
    max_unavailable: Placed[str] | None = None
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One condition on the labels of a node; ``values`` is empty for ``Exists`` and the like."""

    label: str
    operator: str
    values: tuple[str, ...]
    required: bool = True
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The pods that run a server: what is theirs as a whole, and what is about them.

    ``group_size`` is the number of pods that make one replica (LeaderWorkerSet), ``group_role``
    ``leader`` or ``worker`` there, ``prefill`` or ``decode`` in a disaggregated service.
    ``services``, ``autoscalers``, ``budgets`` and ``policies`` are the objects of the source that
    select these pods or scale their owner.
    """

    owner: DeployedObject
    location: Location
    labels: Mapping[str, str]
    replicas: Placed[int] | None = None
    rollout: Rollout | None = None
    group_size: Placed[int] | None = None
    group_role: str = ""
    service_links: Placed[bool] | None = None
    host_network: Placed[bool] | None = None
    host_ipc: Placed[bool] | None = None
    service_account_token: Placed[bool] | None = None
    termination_grace: Placed[int] | None = None
    runtime_class: Placed[str] | None = None
    selections: tuple[Selection, ...] = ()
    init_containers: tuple[Container, ...] = ()
    sidecars: tuple[Container, ...] = ()
    services: tuple[DeployedObject, ...] = ()
    autoscalers: tuple[DeployedObject, ...] = ()
    budgets: tuple[DeployedObject, ...] = ()
    policies: tuple[DeployedObject, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedInstance:
    """One server that a source starts.

    ``gpu_names`` are texts that name its GPU (labels of nodes, the plan's hardware), to be looked
    up; several mean that any of them will do. ``gpus`` are those of one node or pod, ``nodes`` the
    nodes that one replica spans; None where the source does not say. ``devices`` are the numbers
    or ids of the host's GPUs that it is pinned to. ``background`` says that the script which starts
    it goes on while it runs.
    """

    command: ParsedCommand
    kind: str
    name: str
    location: Location
    container: Container | None = None
    pod: Pod | None = None
    vllm_version: Placed[str] | None = None
    gpu_names: tuple[Placed[str], ...] = ()
    gpus: Placed[int] | None = None
    nodes: Placed[int] | None = None
    devices: tuple[Placed[str], ...] = ()
    background: bool = False

    @property
    def key(self) -> str:
        """A text that tells it apart within its source."""
        return f"{self.location.file}:{self.location.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Everything that one source holds; a source is a file, or the manifests of one folder.

    ``notes`` say what was taken for granted or could not be followed; ``packages`` are installed
    with pip beside the servers.
    """

    kind: str
    file: str
    instances: tuple[ServedInstance, ...]
    objects: tuple[DeployedObject, ...] = ()
    notes: tuple[Note, ...] = ()
    packages: tuple[Placed[Requirement], ...] = ()

    def of_kind(self, *kinds: str) -> tuple[DeployedObject, ...]:
        """The objects of these kinds."""
        return tuple(one for one in self.objects if one.kind in kinds)

    def beside(self, instance: ServedInstance) -> tuple[ServedInstance, ...]:
        """The other instances of the source."""
        return tuple(one for one in self.instances if one is not instance)


def repeated_keys(documents: Sequence[YamlDocument]) -> Iterator[Note]:
    """Keys that stand twice in a mapping."""
    for document in documents:
        for key in document.repeated:
            says = f"the key {key.value!r} stands here for the second time; the last one counts"
            yield Note(says, key.location)
