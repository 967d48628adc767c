"""Kubernetes' grammars of names and labels, and the names inside of a pod.

Sources: kubernetes:apimachinery/pkg/util/validation/validation.go and
kubernetes:pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vllm_advisor.parse.kubernetes_semantics.bundle import Bundle, PodTemplate, Remark, entries

LABEL_LENGTH = 63
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_LABEL_OF_A_LETTER = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def label_error(name: Any, *, letter_first: bool = False) -> str:
    """Why a name is no RFC 1123 label (RFC 1035 where a letter has to come first), or nothing."""
    if not isinstance(name, str):
        return "has to be a string"
    if len(name) > LABEL_LENGTH:
        return f"{len(name)} characters, at most {LABEL_LENGTH}"
    if letter_first and not _LABEL_OF_A_LETTER.fullmatch(name):
        return "has to be lower case letters, digits and '-', a letter first, no '-' last"
    if not _LABEL.fullmatch(name):
        return "has to be lower case letters, digits and '-', none of these at the ends"
    return ""


def subdomain_error(name: Any) -> str:
    """Why a name is no RFC 1123 subdomain, or nothing."""
    if not isinstance(name, str):
        return "has to be a string"
    if len(name) > 253:
        return f"{len(name)} characters, at most 253"
    if not _SUBDOMAIN.fullmatch(name):
        return "has to be lower case letters, digits, '-' and '.', a letter or digit at the ends"
    return ""


def label_key_error(key: Any) -> str:
    """Why a key is none of a label or annotation, or nothing."""
    prefix, slash, name = str(key).rpartition("/")
    if slash and subdomain_error(prefix):
        return f"prefix {prefix!r}: {subdomain_error(prefix)}"
    if not 0 < len(name) <= LABEL_LENGTH:
        return f"{len(name)} characters, from 1 to {LABEL_LENGTH}"
    return (
        "" if _QUALIFIED.fullmatch(name) else "letters, digits, '-', '_' and '.', not at the ends"
    )


def label_value_error(value: Any) -> str:
    """Why a value is none of a label, or nothing; an empty one may be."""
    if not isinstance(value, str):
        return f"{value!r} has to be a string"
    if len(value) > LABEL_LENGTH:
        return f"{value!r}: {len(value)} characters, at most {LABEL_LENGTH}"
    if value and not _QUALIFIED.fullmatch(value):
        return f"{value!r}: letters, digits, '-', '_' and '.', not at the ends"
    return ""


def port_name_error(name: Any) -> str:
    """Why a name is none of a container port (IANA service name), or nothing."""
    if label_error(name) or len(name) > 15:
        return "at most 15 lower case letters, digits and '-', none of these at the ends"
    if "--" in name or not re.search(r"[a-z]", name):
        return "needs a letter, and no two '-' in a row"
    return ""


def pod_names(pod: PodTemplate, _bundle: Bundle) -> Iterator[Remark]:
    """Hostnames and names of containers, volumes and ports."""
    at = pod.spec_path
    for key in ("hostname", "subdomain"):
        if key in pod.spec and (error := label_error(pod.spec[key])):
            yield Remark("name-not-valid", f"{at}{key}", f"{pod.spec[key]!r}: {error}")
    named = [*pod.containers(), *entries(pod.spec, "volumes", prefix=at)]
    for path, one in named:
        if error := label_error(one.get("name")):
            yield Remark("name-not-valid", f"{path}.name", f"{one.get('name')!r}: {error}")
    for path, container in pod.containers():
        for port_path, port in entries(container, "ports", prefix=f"{path}."):
            if "name" in port and (error := port_name_error(port["name"])):
                yield Remark("name-not-valid", f"{port_path}.name", f"{port['name']!r}: {error}")
