"""Volumes: mounted but not there, larger than the memory they count against, shared too widely."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    ManifestProblem,
    Object,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    listed,
    mapping,
)
from vllm_advisor.parse.kubernetes_semantics.resources import quantity

ONE_NODE = ("ReadWriteOnce", "ReadWriteOncePod")
SCALERS = {"ScaledObject": "maxReplicaCount", "HorizontalPodAutoscaler": "maxReplicas"}


def mounts(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Mounts of volumes that the pod does not have."""
    if pod.partial:
        return
    names = [one.get("name") for _, one in entries(pod.spec, "volumes")] + [
        mapping(claim, "metadata").get("name")
        for holder in ("spec", "spec.leaderWorkerTemplate")
        for _, claim in entries(mapping(pod.owner, *holder.split(".")), "volumeClaimTemplates")
    ]
    for path, container in pod.containers():
        for at, mount in entries(container, "volumeMounts", prefix=f"{path}."):
            if mount.get("name") not in names:
                message = f"the pod has no volume {mount.get('name')!r}"
                yield Remark("volume-not-there", f"{at}.name", message)


def shared_memory(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Volumes in memory that a container may fill beyond its limit, and be killed for it."""
    sizes = {
        str(volume.get("name")): mapping(volume, "emptyDir").get("sizeLimit")
        for _, volume in entries(pod.spec, "volumes")
        if mapping(volume, "emptyDir").get("medium") == "Memory"
    }
    for path, container in pod.containers():
        limit = mapping(container, "resources", "limits").get("memory")
        for at, mount in entries(container, "volumeMounts", prefix=f"{path}."):
            size = sizes.get(str(mount.get("name")))
            read, most = quantity(size), quantity(limit)
            if read is not None and most is not None and read > most:
                message = f"a volume in memory of {size} counts against the limit of {limit}"
                yield Remark("memory-volume-above-limit", at, message)


def shared_claims(bundle: Bundle) -> Iterator[ManifestProblem]:
    """ReadWriteOnce claims of several pods: those on another node never start."""
    users: dict[int, list[tuple[PodTemplate, str, int]]] = defaultdict(list)
    claims: dict[int, Object] = {}
    for pod in bundle.pods:
        for path, volume in entries(pod.spec, "volumes", prefix=pod.spec_path):
            name = mapping(volume, "persistentVolumeClaim").get("claimName")
            claim = bundle.find("PersistentVolumeClaim", name, pod.namespace)
            modes = listed(mapping(claim, "spec"), "accessModes")
            if claim is not None and modes and all(mode in ONE_NODE for mode in modes):
                claims[id(claim)] = claim
                users[id(claim)].append((pod, path, _pods(pod, bundle)))
    for found in users.values():
        if sum(count for _, _, count in found) > 1:
            for pod, path, _ in found:
                message = "several pods share a ReadWriteOnce claim: ReadWriteMany, or one for each"
                yield Remark("claim-shared", path, message).at(pod.owner, prefix=pod.path)


def _pods(pod: PodTemplate, bundle: Bundle) -> int:
    """How many pods of a template there may be, its autoscaler counted in."""
    owner, spec = pod.owner, mapping(pod.owner, "spec")
    if kind_of(owner) == "DaemonSet":
        return 2  # one on each node
    counts = [spec.get("replicas")]
    group = mapping(spec, "leaderWorkerTemplate")
    if pod.path.endswith("workerTemplate"):
        counts.append(_count(group.get("size")) - ("leaderTemplate" in group))
    for one in bundle.objects:
        target = mapping(one, "spec", "scaleTargetRef")
        aimed = (str(target.get("kind", "Deployment")), target.get("name"))
        if kind_of(one) in SCALERS and aimed == (
            kind_of(owner),
            mapping(owner, "metadata").get("name"),
        ):
            counts.append(mapping(one, "spec").get(SCALERS[kind_of(one)]))
    return max(map(_count, counts))


def _count(value: Any) -> int:
    """A number of pods, which is one where none is given."""
    return value if isinstance(value, int) else 1
