"""What several rules about pods and containers count: no rule itself."""

from __future__ import annotations

from vllm_advisor.parse.container import Container
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.rules.ranks import launches_on_many_nodes, local_engines, world_size
from vllm_advisor.sizing.pod_resources import PodResources, pod_resources
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.units import ceil_div

KUBERNETES = ("kubernetes", "helm-production-stack")
SHM_DEFAULT = 64 << 20  # /dev/shm of a container without a volume there
DOWNLOAD_MIB_PER_SECOND = 100  # as plans assume (types/environment.py)
# Kinds whose controller adds volumes, probes and more to the container that is written.
_COMPLETED = ("LLMInferenceService", "InferenceService")


def container_of(subject: Subject) -> Container | None:
    """The container of a server; None for one that runs in none."""
    return subject.instance.container if subject.instance else None


def in_kubernetes(subject: Subject) -> bool:
    """Whether the server runs in a pod of Kubernetes."""
    return subject.instance is not None and subject.instance.kind in KUBERNETES


def kind_of_owner(subject: Subject) -> str:
    """The kind of the object that the server's pods belong to; empty for a fragment."""
    pod = subject.instance.pod if subject.instance else None
    return pod.owner.kind if pod else ""


def completed(subject: Subject) -> bool:
    """Whether a controller adds to the container what is not written in it."""
    return kind_of_owner(subject) in _COMPLETED


def lone_container(subject: Subject) -> bool:
    """Whether the source shows a container, or a part of one, without its pod."""
    pod = subject.instance.pod if subject.instance else None
    return pod is not None and not pod.owner.kind and not pod.owner.view.at("containers")


def nodes_of(subject: Subject) -> int:
    """Pods or containers that one replica is spread over, as far as the source says."""
    stated = subject.instance.nodes if subject.instance else None
    return max(int(subject.args.get("nnodes", 1)), stated.value if stated else 1)


def ranks_here(subject: Subject) -> int:
    """Ranks that run in this container; with Ray, which spreads them, no more than it has GPUs."""
    ranks = ceil_div(world_size(subject), nodes_of(subject)) * local_engines(subject)
    gpus = subject.instance.gpus if subject.instance else None
    if gpus is not None and launches_on_many_nodes(subject):
        return min(ranks, gpus.value)
    return ranks


def gpus_here(subject: Subject) -> int:
    """GPUs of this container: what it asks for, else one for each of its ranks."""
    stated = subject.instance.gpus if subject.instance else None
    return max(1, stated.value if stated else ranks_here(subject))


def checkpoint_bytes(subject: Subject) -> int | None:
    """Size of the model's files; None where the model is not known."""
    return weight_bytes(subject.model).total_bytes if subject.model else None


def needs_of(
    subject: Subject, checkpoint: int, *, downloads: bool = False, weights_on_node: bool = False
) -> PodResources:
    """What a plan would give this container."""
    return pod_resources(
        checkpoint_bytes=checkpoint,
        gpus=gpus_here(subject),
        nodes=nodes_of(subject),
        engines=local_engines(subject),
        download_mib_per_second=DOWNLOAD_MIB_PER_SECOND if downloads else None,
        weights_on_node=weights_on_node,
    )
