"""What an API server, the kubelet or vLLM will not like in manifests that every schema accepts.

Takes Kubernetes objects as parsed and says what is wrong, object by object; it knows nothing of
where they come from and of what is running in a cluster. Values of a wrong type are a schema's
business and are passed over here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics import (
    containers,
    environment,
    lifetimes,
    metadata,
    names,
    ports,
    references,
    resources,
    selectors,
    volumes,
)
from vllm_advisor.parse.kubernetes_semantics.bundle import Bundle, ManifestProblem, identity

POD_RULES = (
    names.pod_names,
    containers.duplicates,
    environment.variables,
    environment.expansions,
    environment.service_links,
    ports.probes,
    resources.pod_resources,
    volumes.mounts,
    volumes.shared_memory,
    lifetimes.termination,
    references.pod_references,
)
OBJECT_RULES = (
    metadata.metadata,
    metadata.labels,
    selectors.own_selector,
    selectors.selects_nothing,
    ports.service_ports,
    ports.monitor_ports,
    ports.policy_ports,
    resources.claims,
    lifetimes.startup,
    references.object_references,
)
BUNDLE_RULES = (metadata.repeated, volumes.shared_claims)


def manifest_problems(
    objects: Iterable[Mapping[str, Any]], *, external: Collection[str] = ()
) -> list[ManifestProblem]:
    """Problems of objects that are to be applied together, in the order of the objects.

    Args:
        objects: parsed manifests; each with ``apiVersion``, ``kind`` and ``metadata``.
        external: what exists already and may be referred to, as ``Kind/name``. Secrets may always
            be missing: they do not belong into files.
    """
    bundle = Bundle.of(objects, external=external)
    found = list(_problems(bundle))
    order = {identity(each): index for index, each in reversed(list(enumerate(bundle.objects)))}
    return sorted(found, key=lambda problem: order[problem.object])


def _problems(bundle: Bundle) -> Iterator[ManifestProblem]:
    for pod in bundle.pods:
        for pod_rule in POD_RULES:
            for remark in pod_rule(pod, bundle):
                yield remark.at(pod.owner, prefix=pod.path)
    for each in bundle.objects:
        for object_rule in OBJECT_RULES:
            for remark in object_rule(each, bundle):
                yield remark.at(each)
    for bundle_rule in BUNDLE_RULES:
        yield from bundle_rule(bundle)
