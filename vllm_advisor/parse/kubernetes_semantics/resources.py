"""Quantities, and what may be asked for of GPUs and memory.

Sources: kubernetes:apimachinery/pkg/api/resource/quantity.go and
kubernetes:pkg/apis/core/validation/validation.go#ValidateContainerResourceRequirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    Object,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    mapping,
)

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?"
)
_SUFFIXES = {
    **{f"{letter}i": Fraction(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
    **{letter: Fraction(1000) ** (power + 1) for power, letter in enumerate("kMGTPE")},
    "m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9),
}  # fmt: skip
_LONGEST = 60  # characters; a longer text is no quantity
WHOLE_BYTES = frozenset({"memory", "ephemeral-storage", "storage"})


def quantity(value: Any) -> Fraction | None:
    """A quantity as Kubernetes reads it (``"16Gi"``, ``"500m"``, ``4``); None if it does not."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or abs(int(match[3] or 0)) > 30:
        return None
    # Fraction reads "1.5" and ".5", and refuses "1.".
    number = Fraction(match[1].removesuffix("."))
    return number * _SUFFIXES.get(match[2], Fraction(1)) * Fraction(10) ** int(match[3] or 0)


def pod_resources(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Requests and limits of containers, and sizes of volumes in memory or on disk."""
    for path, container in pod.containers():
        yield from _requirements(mapping(container, "resources"), f"{path}.resources")
    for path, volume in entries(pod.spec, "volumes", prefix=pod.spec_path):
        size = mapping(volume, "emptyDir").get("sizeLimit")
        if size is not None and (error := _quantity_error("storage", size)):
            yield Remark("quantity-not-valid", f"{path}.emptyDir.sizeLimit", error)


def claims(one: Object, _bundle: Bundle) -> Iterator[Remark]:
    """What a PersistentVolumeClaim, or a set's template of one, asks for."""
    found = [("spec.", mapping(one, "spec"))] if kind_of(one) == "PersistentVolumeClaim" else []
    for holder in ("spec", "spec.leaderWorkerTemplate"):
        inside = mapping(one, *holder.split("."))
        for path, claim in entries(inside, "volumeClaimTemplates", prefix=f"{holder}."):
            found.append((f"{path}.spec.", mapping(claim, "spec")))
    for path, spec in found:
        yield from _requirements(mapping(spec, "resources"), f"{path}resources")


def _requirements(resources: Mapping[str, Any], path: str) -> Iterator[Remark]:
    requests, limits = mapping(resources, "requests"), mapping(resources, "limits")
    for kind, asked in (("requests", requests), ("limits", limits)):
        for name, value in asked.items():
            if error := _quantity_error(name, value):
                yield Remark("quantity-not-valid", f"{path}.{kind}[{name}]", error)
    for name, value in requests.items():
        asked_for, limit = quantity(value), quantity(limits.get(name))
        if _extended(name) and asked_for != limit:
            message = f"a request of {value} needs an equal limit, not {limits.get(name, 'none')}"
            yield Remark("request-not-equal-to-limit", f"{path}.requests[{name}]", message)
        elif asked_for is not None and limit is not None and asked_for > limit:
            message = f"a request of {value} is above the limit of {limits[name]}"
            yield Remark("request-above-limit", f"{path}.requests[{name}]", message)


def _quantity_error(name: Any, value: Any) -> str:
    read = quantity(value)
    if read is None:
        return f"{value!r} is no quantity; write 16Gi, 500m or 4"
    if read < 0:
        return f"{value!r} is negative"
    if _extended(name) and read.denominator != 1:
        return f"{value!r} has to be a whole number"
    if name in WHOLE_BYTES and read.denominator != 1:
        return f"{value!r} is no whole number of bytes: m is a thousandth, M a million"
    return ""


def _extended(name: Any) -> bool:
    """Whether a resource is a device, of which nobody gets a part or more than was promised."""
    prefix, slash, _ = str(name).rpartition("/")
    return bool(slash) and not prefix.endswith("kubernetes.io")
