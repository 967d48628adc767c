"""Objects that belong together: the pods they make, and who selects whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Object = Mapping[str, Any]

# Where a kind keeps its pods' template.
TEMPLATES = {
    "Deployment": ("spec.template",),
    "ReplicaSet": ("spec.template",),
    "StatefulSet": ("spec.template",),
    "DaemonSet": ("spec.template",),
    "Job": ("spec.template",),
    "CronJob": ("spec.jobTemplate.spec.template",),
    "LeaderWorkerSet": (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
    "Pod": ("",),
}
# Pod specs that a controller completes: labels, volumes and ports are not all here.
PARTIAL_SPECS = {
    "LLMInferenceService": (
        "spec.template",
        "spec.worker",
        "spec.prefill.template",
        "spec.prefill.worker",
    )
}
# Labels that controllers give their pods.
GIVEN_LABELS = (
    "leaderworkerset.sigs.k8s.io/",
    "statefulset.kubernetes.io/",
    "apps.kubernetes.io/",
    "batch.kubernetes.io/",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestProblem:
    """One thing that is wrong.

    ``code`` names the kind of problem, ``object`` is ``Kind/name``, with the namespace between
    where there is one, and ``path`` leads from the object to the value, as ``spec.ports[0].name``.
    """

    code: str
    object: str
    path: str
    message: str


class Remark(NamedTuple):
    """A problem, its path being relative to what the rule was shown."""

    code: str
    path: str
    message: str

    def at(self, of: Object, *, prefix: str = "") -> ManifestProblem:
        """The problem in an object, where ``prefix`` leads to what the rule was shown."""
        path = f"{prefix}.{self.path}" if prefix and self.path else prefix or self.path
        return ManifestProblem(code=self.code, object=identity(of), path=path, message=self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """Pods that an object makes; ``path`` leads to what has their ``metadata`` and ``spec``."""

    owner: Object
    path: str
    labels: Mapping[str, Any]
    spec: Mapping[str, Any]
    partial: bool = False

    @property
    def namespace(self) -> str:
        """Where the pods run."""
        return namespace(self.owner)

    @property
    def spec_path(self) -> str:
        """Path from ``path`` to the pod spec."""
        return "" if self.partial else "spec."

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Containers with their paths, those that run before the others first."""
        for key in ("initContainers", "containers"):
            yield from entries(self.spec, key, prefix=self.spec_path)

    def declared_ports(self) -> list[Mapping[str, Any]]:
        """All container ports, of all containers."""
        return [port for _, one in self.containers() for _, port in entries(one, "ports")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Objects that are applied together, with what exists beside them."""

    objects: tuple[Object, ...]
    pods: tuple[PodTemplate, ...]
    external: frozenset[str]

    @classmethod
    def of(cls, objects: Iterable[Object], *, external: Collection[str] = ()) -> Bundle:
        """The bundle of parsed objects; what is no object is passed over."""
        kept = tuple(one for one in objects if isinstance(one, Mapping))
        pods = tuple(pod for one in kept for pod in _pods_of(one))
        return cls(objects=kept, pods=pods, external=frozenset(external))

    def find(self, kind: str, name: Any, where: str) -> Object | None:
        """The object of a name in a namespace."""
        for one in self.objects:
            if (
                one.get("kind") == kind
                and mapping(one, "metadata").get("name") == name
                and namespace(one) == where
            ):
                return one
        return None

    def has(self, kind: str, name: Any, where: str) -> bool:
        """Whether something that is referred to exists, here or outside."""
        return f"{kind}/{name}" in self.external or self.find(kind, name, where) is not None

    def selected(self, selector: Mapping[str, Any], where: str) -> list[PodTemplate]:
        """Pods of a namespace that a label selector takes; partial ones may always be meant."""
        return [
            pod
            for pod in self.pods
            if pod.namespace == where and (pod.partial or selects(selector, pod.labels))
        ]


def _pods_of(one: Object) -> Iterator[PodTemplate]:
    kind = kind_of(one)
    for path in TEMPLATES.get(kind, ()):
        template = mapping(one, *path.split(".")) if path else one
        if mapping(template, "spec"):
            labels = mapping(template, "metadata", "labels")
            yield PodTemplate(owner=one, path=path, labels=labels, spec=mapping(template, "spec"))
    for path in PARTIAL_SPECS.get(kind, ()):
        if spec := mapping(one, *path.split(".")):
            yield PodTemplate(owner=one, path=path, labels={}, spec=spec, partial=True)


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether a LabelSelector (``matchLabels``, ``matchExpressions``) takes these labels."""
    for key, value in mapping(selector, "matchLabels").items():
        if not str(key).startswith(GIVEN_LABELS) and labels.get(key) != value:
            return False
    for _, term in entries(selector, "matchExpressions"):
        key, values = str(term.get("key")), listed(term, "values")
        fits = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not key.startswith(GIVEN_LABELS) and not fits.get(str(term.get("operator")), True):
            return False
    return True


def mapping(value: Any, *keys: str) -> Mapping[str, Any]:
    """The mapping under keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(value: Any, key: str, *, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings in the list under a key, each with its path."""
    for index, one in enumerate(listed(value, key)):
        if isinstance(one, Mapping):
            yield f"{prefix}{key}[{index}]", one


def listed(value: Any, key: str) -> list[Any]:
    """The list under a key; empty where there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def words(container: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The strings of a container's command and arguments, each with its path."""
    return [
        (f"{key}[{index}]", word)
        for key in ("command", "args")
        for index, word in enumerate(listed(container, key))
        if isinstance(word, str)
    ]


def kind_of(one: Object) -> str:
    """An object's kind."""
    return str(one.get("kind"))


def namespace(one: Object) -> str:
    """An object's namespace."""
    return str(mapping(one, "metadata").get("namespace") or "default")


def identity(one: Object) -> str:
    """``Kind/namespace/name``, the namespace being left out where it is not given."""
    metadata = mapping(one, "metadata")
    parts = (one.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return "/".join(str(part) for part in parts if part)
