"""Environment variables: their values, ``$(NAME)``, and what Services put there.

Kubernetes replaces ``$(NAME)`` in command, args and values if NAME is a variable of the container
defined before, and leaves it as it is if not; ``$$(NAME)`` is never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import (
    Bundle,
    PodTemplate,
    Remark,
    entries,
    kind_of,
    mapping,
    namespace,
    words,
)

EXPANSION = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
# Read as integers (vllm:0.33.0:vllm/envs.py); a Service gives an address instead.
PORT_VARIABLES = frozenset({
    "VLLM_PORT", "VLLM_DP_MASTER_PORT", "VLLM_NIXL_SIDE_CHANNEL_PORT", "VLLM_P2P_SIDE_CHANNEL_PORT",
    "VLLM_EC_SIDE_CHANNEL_PORT", "VLLM_MOONCAKE_BOOTSTRAP_PORT",
})  # fmt: skip
# What the controller of a kind adds to its pods' variables.
GIVEN = {"LeaderWorkerSet": "LWS_"}


def variables(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Variables without a name, with a value that is no string, or with two values."""
    for path, container in pod.containers():
        for at, one in entries(container, "env", prefix=f"{path}."):
            if not isinstance(one.get("name"), str) or not one["name"] or "=" in one["name"]:
                yield Remark("variable-not-valid", f"{at}.name", f"{one.get('name')!r} is no name")
            if "value" in one and "valueFrom" in one:
                yield Remark("variable-not-valid", at, "has both value and valueFrom")
            elif one.get("value") is not None and not isinstance(one["value"], str):
                message = f"{one['value']!r} has to be a string: quote it"
                yield Remark("variable-not-valid", f"{at}.value", message)


def expansions(pod: PodTemplate, bundle: Bundle) -> Iterator[Remark]:
    """``$(NAME)`` that nothing defines, so that it stays as it is."""
    for path, container in pod.containers():
        if container.get("envFrom") or pod.partial:
            continue  # names that are not in sight
        known = _service_variables(pod, bundle)
        for at, one in entries(container, "env", prefix=f"{path}."):
            for name in _undefined(one.get("value"), known, pod):
                yield _not_defined(f"{at}.value", name)
            known.add(str(one.get("name")))
        shell = _is_shell(container)
        for at, word in words(container):
            for name in _undefined(word, known, pod):
                # $(nproc) in a shell's script is the shell's to replace.
                if not shell or name.isupper():
                    yield _not_defined(f"{path}.{at}", name)


def _undefined(text: Any, known: Collection[str], pod: PodTemplate) -> list[str]:
    """Names in ``$(NAME)`` that are neither known nor given by the pods' controller."""
    found = [match[1] for match in EXPANSION.finditer(text)] if isinstance(text, str) else []
    given = GIVEN.get(kind_of(pod.owner))
    return [
        name
        for name in found
        if name and name not in known and not (given and name.startswith(given))
    ]


def _not_defined(path: str, name: str) -> Remark:
    message = f"no variable {name} is defined before; write $$({name}) for the text itself"
    return Remark("variable-not-defined", path, message)


def _is_shell(container: Mapping[str, Any]) -> bool:
    said = [word for _, word in words(container)]
    return bool(said) and said[0].rpartition("/")[2] in SHELLS and "-c" in said


def _service_variables(pod: PodTemplate, bundle: Bundle) -> set[str]:
    """Variables that the kubelet makes of Services; those of the API server always."""
    links = pod.spec.get("enableServiceLinks") is not False
    services = ["kubernetes", *(_services(pod, bundle) if links else ())]
    return {
        f"{_variable(name)}{end}"
        for name in services
        for end in ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
    }


def _services(pod: PodTemplate, bundle: Bundle) -> list[str]:
    """Services in the pod's namespace that have an address of their own."""
    return [
        str(mapping(one, "metadata").get("name"))
        for one in bundle.objects
        if kind_of(one) == "Service"
        and namespace(one) == pod.namespace
        and mapping(one, "spec").get("clusterIP") != "None"
    ]


def _variable(service: str) -> str:
    return service.upper().replace("-", "_")


def service_links(pod: PodTemplate, bundle: Bundle) -> Iterator[Remark]:
    """Services whose variables vLLM takes for its own settings, and does not start."""
    if pod.spec.get("enableServiceLinks") is False or pod.partial:
        return
    for _, container in pod.containers():
        said = [str(container.get("image")), *(word for _, word in words(container))]
        if not any("vllm" in word for word in said):
            continue
        own = {str(one.get("name")) for _, one in entries(container, "env")}
        validated = "--fail-on-environ-validation" in {word.replace("_", "-") for word in said}
        for service in _services(pod, bundle):
            name = f"{_variable(service)}_PORT"
            message = f"Service {service} sets {name}=tcp://...; set enableServiceLinks: false"
            if (name in PORT_VARIABLES and name not in own) or (
                validated and name.startswith("VLLM_")
            ):
                yield Remark("service-link-taken-as-setting", pod.spec_path[:-1], message)
