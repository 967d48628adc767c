"""The real kubectl: how Go reads the YAML, and what a Kustomization builds.

PyYAML speaks YAML 1.1 and so does Go's parser, but not the same one: ``12345e67`` is a string here
and a number there. What we render has to be read alike by both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

KUBECTL = Path(sys.executable).with_name("kubectl")


def read_by_kubectl(text: str) -> list[dict[str, Any]]:
    """The objects as kubectl reads them from a file.

    Raises:
        subprocess.CalledProcessError: kubectl refuses to read it; ``stderr`` says why.
    """
    patch = [KUBECTL, "patch", "--local", "--type=merge", "-p", "{}", "-o", "json", "-f", "-"]
    return joined_json(asked(patch, text))


def yaml_problems(text: str) -> list[str]:
    """Where kubectl and PyYAML read different things, or kubectl nothing."""
    try:
        theirs = read_by_kubectl(text)
    except subprocess.CalledProcessError as refused:
        return [refused.stderr.strip()]
    ours = [one for one in yaml.safe_load_all(text) if one is not None]
    if len(ours) != len(theirs):
        return [f"{len(ours)} objects in PyYAML, {len(theirs)} in kubectl"]
    return [
        line
        for index, (our, their) in enumerate(zip(ours, theirs, strict=True))
        for line in differences(our, their, f"[{index}]")
    ]


def kustomize(folder: Path) -> list[dict[str, Any]]:
    """What ``kubectl kustomize`` builds from a folder with a kustomization.yaml.

    Raises:
        subprocess.CalledProcessError: the build failed; ``stderr`` says why.
    """
    return read_by_kubectl(asked([KUBECTL, "kustomize", folder]))


def kustomize_problems(folder: Path, *, beside: frozenset[str] = frozenset()) -> list[str]:
    """Why a folder does not build, or whose objects get lost or changed on the way.

    The Kustomization is expected to list resources only: what transformers do is a difference.
    ``beside`` names the YAML files that are for another tool.
    """
    try:
        built = kustomize(folder)
    except subprocess.CalledProcessError as refused:
        return [refused.stderr.strip()]
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    written = [
        one
        for name in listed
        for one in yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))
        if one is not None
    ]
    left_out = {path.name for path in folder.glob("*.yaml")} - {
        *listed,
        "kustomization.yaml",
        *beside,
    }
    found = [f"{name} is not among the resources" for name in sorted(left_out)]
    return found + differences(
        {identity(one): one for one in written}, {identity(one): one for one in built}, ""
    )


def identity(of: dict[str, Any]) -> str:
    metadata = of["metadata"]
    return f"{of['apiVersion']} {of['kind']} {metadata.get('namespace')}/{metadata['name']}"


def differences(ours: Any, theirs: Any, path: str) -> list[str]:
    """Every place where two readings differ, the type counting as well."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for key in sorted(ours.keys() | theirs.keys(), key=str)
            for line in differences(
                ours.get(key, "nothing"), theirs.get(key, "nothing"), f"{path}.{key}"
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for index, (our, their) in enumerate(zip(ours, theirs, strict=True))
            for line in differences(our, their, f"{path}[{index}]")
        ]
    same = ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)
    return [] if same else [f"{path}: {ours!r} in PyYAML, {theirs!r} in Go"]


def joined_json(text: str) -> list[dict[str, Any]]:
    """JSON objects that follow each other without a comma."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        found.append(one)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def asked(command: list[Any], text: str = "") -> str:
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout
