"""Lists in a pod whose items must differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import Bundle, PodTemplate, Remark, entries

DEFAULTS = {"protocol": "TCP"}

Entries = Iterable[tuple[str, Mapping[str, Any]]]


def duplicates(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Containers, volumes, variables, ports and mount paths that are there twice."""
    at = pod.spec_path
    yield from _twice(pod.containers(), "name")
    yield from _twice(entries(pod.spec, "volumes", prefix=at), "name")
    for path, container in pod.containers():
        inside = f"{path}."
        yield from _twice(entries(container, "env", prefix=inside), "name")
        yield from _twice(entries(container, "volumeMounts", prefix=inside), "mountPath")
        yield from _twice(entries(container, "ports", prefix=inside), "name")
        yield from _twice(entries(container, "ports", prefix=inside), "containerPort", "protocol")


def _twice(found: Entries, key: str, *more: str) -> Iterator[Remark]:
    """Items whose ``key`` (and what else makes them one) an earlier item has."""
    seen: Counter[Hashable] = Counter()
    for path, one in found:
        if one.get(key) is None:
            continue
        identity = tuple(str(one.get(part, DEFAULTS.get(part))) for part in (key, *more))
        if seen[identity]:
            yield Remark("name-repeated", f"{path}.{key}", f"{one[key]!r} is there already")
        seen[identity] += 1
