"""Which instance answered: from the headers of a response, or from counters that grew."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.types.routing import INSTANCE_HEADER

LITELLM_HEADER = "x-litellm-model-id"


class By(StrEnum):
    """How it is known."""

    HEADER = "header"
    LITELLM = "litellm"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The instance that answered, by name, and how that is known."""

    instance: str
    by: By


def instance_of(headers: Mapping[str, str], instances: Collection[str]) -> Landing | None:
    """The instance that a response names, or ``None``.

    ``x-vllm-instance`` wins. LiteLLM's id of a deployment is the instance's name, starts with
    ``<instance>-``, or has one of these as its last part between dots or colons
    (``<route>:<instance>``).

    Args:
        headers: of the response, names in lower case.
        instances: names of the plan.
    """
    for header, by in ((INSTANCE_HEADER, By.HEADER), (LITELLM_HEADER, By.LITELLM)):
        said = headers.get(header, "").strip()
        whole = [name for name in instances if re.fullmatch(rf"{re.escape(name)}(-\d+)?", said)]
        if whole:
            return Landing(instance=max(whole, key=len), by=by)
        for part in reversed(re.split(r"[.:]", said)):
            named = [name for name in instances if part == name or part.startswith(f"{name}-")]
            if named:
                return Landing(instance=max(named, key=len), by=by)
    return None


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, ...]:
    """Instances whose counter grew."""
    return tuple(name for name, count in after.items() if count > before[name])
