"""Names, labels and metadata of the objects of a plan: valid for Kubernetes, and short enough."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import yaml

from vllm_advisor.types.environment import Environment
from vllm_advisor.types.plan import Instance, Plan

# A pod of a StatefulSet or LeaderWorkerSet adds "-0-0", its revision label a hash of ten: 52 is
# what fits into a label. Services and claims get no longer suffix than that.
LONGEST_NAME = 45
_HASH = 6
_NOT_DNS = re.compile(r"[^a-z0-9]+")
_LONGEST_LABEL = 63
# What Go's YAML takes for a boolean or a number and PyYAML does not.
_OTHER_TO_GO = re.compile(r"[yn]|[-+]?(0o[0-7_]+|[.0-9][0-9_.]*(e[-+]?[0-9]+)?)", re.IGNORECASE)


def object_name(plan: Plan, instance: Instance, longest: int = LONGEST_NAME) -> str:
    """``<plan>-<instance>`` as a DNS label; what is cut off lives on in a hash."""
    return dns_label(f"{plan.name}-{instance.name}", longest)


def dns_label(full: str, longest: int = LONGEST_NAME) -> str:
    """Text as a DNS label that YAML reads as text, quoted or not.

    Two different texts never share one: what is changed or cut off lives on in a hash.
    """
    name = _NOT_DNS.sub("-", full.lower()).strip("-") or "vllm"
    if not name[0].isalpha() or not is_plain_text(name):  # a Service's name starts with a letter
        name = f"v-{name}"
    if name == full and len(name) <= longest:
        return name
    digest = hashlib.sha256(full.encode()).hexdigest()[:_HASH]
    return f"{name[: longest - _HASH - 1].rstrip('-')}-{digest}"


def is_plain_text(text: str) -> bool:
    """YAML parsers, Go's among them, read it as text even where it stands without quotes."""
    return isinstance(yaml.safe_load(text), str) and not _OTHER_TO_GO.fullmatch(text)


def label_value(text: str) -> str:
    """Text as a label's value: at most 63 letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_LONGEST_LABEL].strip("-._")


def selector(plan: Plan, instance: Instance) -> dict[str, str]:
    """Labels that find the pods of one instance and no others, in any version."""
    return {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": object_name(plan, instance),
    }


def labels(plan: Plan, instance: Instance) -> dict[str, str]:
    """Labels of every object of an instance; those of the environment come first."""
    return {
        **plan.environment.labels,
        **selector(plan, instance),
        "app.kubernetes.io/component": label_value(instance.role),
        **plan_labels(plan),
    }


def plan_labels(plan: Plan) -> dict[str, str]:
    """Labels of every object of a plan, whichever instance it belongs to."""
    return {
        "app.kubernetes.io/part-of": label_value(plan.name) or "vllm",
        "app.kubernetes.io/version": label_value(plan.vllm_version),
        "app.kubernetes.io/managed-by": "vllm-advisor",
    }


def metadata_of(name: str, place: Environment, labels: dict[str, str]) -> dict[str, Any]:
    """``metadata`` of an object, with the namespace where one is given."""
    scope = {"namespace": place.namespace} if place.namespace else {}
    return {"name": name, **scope, "labels": labels}
