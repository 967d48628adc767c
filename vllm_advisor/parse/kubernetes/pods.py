"""A pod as a whole: replicas, rollout, nodes it asks for, and the objects that are about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vllm_advisor.parse.deployed import DeployedObject, Pod, Rollout, Selection
from vllm_advisor.parse.kubernetes.containers import container_of
from vllm_advisor.parse.kubernetes.objects import PodSource
from vllm_advisor.parse.kubernetes_semantics.bundle import namespace, selects
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.yaml_tree import YamlValue

_STRATEGIES = ("strategy", "updateStrategy", "rolloutStrategy")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SCALERS = ("ScaledObject", "HorizontalPodAutoscaler", "PodAutoscaler", "VerticalPodAutoscaler")


def pod_of(source: PodSource, server: YamlValue, objects: tuple[DeployedObject, ...]) -> Pod:
    """The pod in which one of the containers is a server."""
    spec, owner = source.spec, source.owner
    labels = {e.key: e.string() for e in source.template.at("metadata", "labels").entries()}
    others = [c for c in source.containers if c.path != server.path]
    return Pod(
        owner=owner,
        location=spec.location,
        labels=labels,
        replicas=_replicas(owner.view, source),
        rollout=rollout_of(owner.view.at("spec")),
        group_size=owner.view.at("spec", "leaderWorkerTemplate", "size").placed_integer(),
        group_role=_role(source),
        service_links=spec.at("enableServiceLinks").placed_boolean(),
        host_network=spec.at("hostNetwork").placed_boolean(),
        host_ipc=spec.at("hostIPC").placed_boolean(),
        service_account_token=spec.at("automountServiceAccountToken").placed_boolean(),
        termination_grace=spec.at("terminationGracePeriodSeconds").placed_integer(),
        runtime_class=spec.at("runtimeClassName").placed_string(),
        selections=tuple(selections_of(spec)),
        init_containers=tuple(
            container_of(one, source, objects) for one in spec.at("initContainers").items()
        ),
        sidecars=tuple(container_of(one, source, objects) for one in others),
        services=tuple(_selecting(("Service",), labels, owner, objects)),
        autoscalers=tuple(_scalers(owner, objects)),
        budgets=tuple(_selecting(("PodDisruptionBudget",), labels, owner, objects)),
        policies=tuple(_selecting(("NetworkPolicy",), labels, owner, objects)),
    )


def selections_of(spec: YamlValue) -> Iterator[Selection]:
    """What a pod spec asks of the labels of its node."""
    for entry in spec.at("nodeSelector").entries():
        yield Selection(
            label=entry.key, operator="In", values=(entry.string(),), location=entry.location
        )
    affinity = spec.at("affinity", "nodeAffinity")
    for term in affinity.at(_REQUIRED, "nodeSelectorTerms").items():
        yield from match_expressions(term)
    for weighted in affinity.at(_PREFERRED).items():
        yield from match_expressions(weighted.at("preference"), required=False)


def match_expressions(term: YamlValue, *, required: bool = True) -> Iterator[Selection]:
    """The conditions of one node selector term."""
    for one in term.at("matchExpressions").items():
        yield Selection(
            label=one.at("key").string(),
            operator=one.at("operator").string(),
            values=tuple(value.string() for value in one.at("values").items()),
            required=required,
            location=one.location,
        )


def _role(source: PodSource) -> str:
    """A LeaderWorkerSet without a template of its own for the leader makes it like the workers."""
    group = source.owner.view.at("spec", "leaderWorkerTemplate")
    if source.role == "worker" and group and not group.at("leaderTemplate"):
        return "leader"
    return source.role


def _replicas(owner: YamlValue, source: PodSource) -> Placed[int] | None:
    if source.role in ("prefill", "decode"):
        own = owner.at("spec", source.role, "replicas").placed_integer()
        if own is not None:
            return own
    for path in (
        ("spec", "replicas"),
        ("spec", "parallelism"),
        ("spec", "predictor", "minReplicas"),
    ):
        if (found := owner.at(*path).placed_integer()) is not None:
            return found
    return owner.at("replicas").placed_integer() if source.fragment else None


def rollout_of(spec: YamlValue) -> Rollout | None:
    """How the pods of a spec are replaced; None where it does not say."""
    for key in _STRATEGIES:
        strategy = spec.at(key)
        if not strategy.mapping():
            continue
        limits = next(
            (
                strategy.at(at)
                for at in ("rollingUpdate", "rollingUpdateConfiguration")
                if strategy.at(at)
            ),
            strategy,
        )
        return Rollout(
            strategy=strategy.at("type").string() or "RollingUpdate",
            max_surge=limits.at("maxSurge").placed_string(),
            max_unavailable=limits.at("maxUnavailable").placed_string(),
            location=strategy.location,
        )
    return None


def _selecting(
    kinds: tuple[str, ...],
    labels: Mapping[str, str],
    owner: DeployedObject,
    objects: tuple[DeployedObject, ...],
) -> Iterator[DeployedObject]:
    """Objects of a kind whose selector takes pods with these labels."""
    for one in objects:
        if one.kind not in kinds or namespace(one.data) != namespace(owner.data):
            continue
        if one.kind == "Service":
            plain = one.view.at("spec", "selector").mapping()
            selector: Mapping[str, object] = {"matchLabels": plain} if plain else {}
        else:
            key = "podSelector" if one.kind == "NetworkPolicy" else "selector"
            selector = one.view.at("spec", key).mapping()
        if (any(selector.values()) or one.kind == "NetworkPolicy") and selects(selector, labels):
            yield one


def _scalers(
    owner: DeployedObject, objects: tuple[DeployedObject, ...]
) -> Iterator[DeployedObject]:
    for one in objects:
        target = one.view.at("spec", "scaleTargetRef")
        if one.kind not in _SCALERS or not target or namespace(one.data) != namespace(owner.data):
            continue
        kind = target.at("kind").string() or "Deployment"
        if (kind, target.at("name").string()) == (owner.kind, owner.name):
            yield one
